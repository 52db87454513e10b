#include "campaigns/schedule.hpp"

#include <catch2/catch.hpp>
#include <cmath>

using namespace stepcast;

namespace {

double ceil_of(int a, int b) {
  return (a + b - 1) / b;
}

Campaign spread_out() {
  Campaign campaign;
  campaign.points = 60;
  campaign.groups = 7;
  campaign.folds = 5;
  campaign.folds_at_once = 3;
  campaign.training_devices = 4;
  campaign.training = {1000};
  campaign.point_spread = 0.5;
  campaign.fold_spread = 0.1;
  campaign.stopped_share = 0.3;
  campaign.stopped_after = 0.25;
  campaign.cost = {{2}, {1e-3}};
  return campaign;
}

double idle(const CampaignTimes& times) {
  return times.idle_optimizer + times.idle_fold + times.idle_generation + times.idle_tail + times.idle_driver;
}

}  // namespace

TEST_CASE("equal trainings take ceil(points / N_G) x ceil(K / N_F) of them", "[campaigns]") {
  const int groups = GENERATE(1, 3, 4, 50), folds_at_once = GENERATE(1, 2, 5);
  const int generation = GENERATE(0, 20);
  CAPTURE(groups, folds_at_once, generation);
  Campaign campaign;
  campaign.points = 20;
  campaign.groups = groups;
  campaign.folds = 5;
  campaign.folds_at_once = folds_at_once;
  campaign.training = {100};
  campaign.generation = generation;
  const CampaignTimes times = campaign_times(campaign);
  CHECK(times.makespan.value == Approx(ceil_of(20, groups) * ceil_of(5, folds_at_once) * 100));
  CHECK(times.busy == Approx(20 * 5 * 100));
}

TEST_CASE("devices are 1 + N_G x N_F x (N_M x N_W x N_GPU), and N_sk where there are several",
          "[campaigns]") {
  Campaign campaign;
  campaign.groups = 10;
  campaign.folds_at_once = 5;
  campaign.training_devices = 2 * 5 * 2;
  CHECK(campaign_devices(campaign) == 1001);
  campaign.optimizers = 4;
  CHECK(campaign_devices(campaign) == 1005);
}

TEST_CASE("every second of every device is busy or idle for one reason", "[campaigns]") {
  Campaign campaign = spread_out();
  campaign.generation = GENERATE(0, 10, 60);
  campaign.optimizers = GENERATE(1, 3);
  campaign.shared_history = GENERATE(true, false);
  for (int draw = 0; draw < 5; ++draw) {
    const CampaignTimes times = campaign_times(campaign, draw);
    CHECK(times.busy + idle(times) == Approx(times.devices * times.makespan.value).epsilon(1e-12));
    CHECK(times.idle_optimizer > 0);
    CHECK(times.idle_fold > 0);
    CHECK(times.idle_tail > 0);
    CHECK((times.idle_generation > 0) == (campaign.generation == 10));
  }
}

TEST_CASE("groups that wait for one optimizer take turns", "[campaigns]") {
  Campaign campaign;
  campaign.points = 12;
  campaign.groups = 4;
  campaign.training = {10};
  campaign.cost.base = {5};  // four groups need 20 s of proposals for 15 s of proposal and training each
  const CampaignTimes times = campaign_times(campaign);
  CHECK(times.makespan.value == Approx(12 * 5 + 10));  // the optimizer is always busy
  CHECK(times.optimizer_busy == Approx(60.0 / 70));
  campaign.optimizers = 4;
  CHECK(campaign_times(campaign).makespan.value == Approx(3 * (5 + 10)));
}

TEST_CASE("the n-th proposal of an optimizer takes base + cubic n^3", "[campaigns]") {
  Campaign campaign;
  campaign.points = 6;
  campaign.cost = {{1}, {2}};
  CHECK(campaign_times(campaign).makespan.value == Approx(6 + 2 * (1 + 8 + 27 + 64 + 125)));
  campaign.groups = campaign.optimizers = 2;
  campaign.shared_history = false;  // each knows its own 0, 1, 2
  CHECK(campaign_times(campaign).makespan.value == Approx(3 + 2 * (1 + 8)));
}

TEST_CASE("a generation waits for its slowest point, and without generations no group waits", "[campaigns]") {
  Campaign campaign = spread_out();
  campaign.points = 100;
  const double asynchronous = mean_campaign_times(campaign, 20).makespan.value;
  campaign.generation = 10;
  CHECK(mean_campaign_times(campaign, 20).makespan.value > 1.1 * asynchronous);
}

TEST_CASE("spread keeps the mean of all trainings", "[campaigns]") {
  Campaign campaign;
  campaign.points = 20'000;
  campaign.training = {100};
  campaign.point_spread = 0.4;
  campaign.fold_spread = 0.2;
  const double error = 100 * std::sqrt((std::exp(0.4 * 0.4 + 0.2 * 0.2) - 1) / campaign.points);
  CHECK(campaign_times(campaign).busy / campaign.points == Approx(100).margin(5 * error));
}

TEST_CASE("stopping a share of the points early saves that share of the work", "[campaigns]") {
  Campaign campaign;
  campaign.points = 20'000;
  campaign.training = {100};
  campaign.stopped_share = 0.4;
  campaign.stopped_after = 0.25;
  const double error = 75 * std::sqrt(0.4 * 0.6 / campaign.points);
  CHECK(campaign_times(campaign).busy / campaign.points == Approx(60 + 0.4 * 25).margin(5 * error));
}

TEST_CASE("invalid campaigns are refused", "[campaigns]") {
  Campaign campaign;
  campaign.groups = 0;
  CHECK_THROWS_WITH(campaign_times(campaign), "campaign: counts must be >= 1");
  campaign = {};
  campaign.training = {-1};
  CHECK_THROWS_WITH(campaign_times(campaign), "campaign: times must be >= 0");
  campaign = {};
  campaign.stopped_share = 1.5;
  CHECK_THROWS_WITH(campaign_times(campaign), "campaign: shares must be from 0 to 1");
}
