#include "forecast/simulate_point.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

namespace {

/// A row of 2 s a step, 100 h of training.
Row trained() {
  Row row;
  row.set("step_seconds", 2.0);
  row.set("training_hours", 100.0);
  return row;
}

}  // namespace

TEST_CASE("a scenario without faults and campaign gets no columns of them", "[commands]") {
  Row row = trained();
  set_training_columns(row, Experiment{});
  CHECK(row.cells.size() == 2);
}

TEST_CASE("columns of faults add up to the training with faults", "[commands]") {
  Experiment experiment;
  experiment.faults.emplace();
  Faults& faults = experiment.faults->faults;
  faults.nodes = 10;
  faults.node_mtbf = {10 * 20'000.0};
  faults.restart = {100};
  faults.checkpoints = {{1800}, {30}};
  faults.slow = {0.1, 2, {500}, {5000}};
  Row row = trained();
  set_training_columns(row, experiment);
  double lost = 0;
  for (const char* column :
       {"lost_to_checkpoints_seconds", "lost_to_rework_seconds", "lost_to_restart_seconds",
        "lost_to_missing_workers_seconds", "lost_to_slow_workers_seconds"}) {
    lost += *row.number(column);
  }
  CHECK(3600 * *row.number("training_hours_with_faults") == Approx(360'000 + lost));
  CHECK(*row.number("useful_share") == Approx(360'000 / (360'000 + lost)));
  CHECK(*row.number("young_checkpoint_interval_seconds") == Approx(std::sqrt(2 * 30 * 20'000.0)));
  const double best = *row.number("best_checkpoint_interval_seconds");
  CHECK(best ==
        Approx(*row.number("daly_checkpoint_interval_seconds")).epsilon(0.25));  // 64 draws, 18 failures

  experiment.faults->best_interval = true;
  Row at_best = trained();
  set_training_columns(at_best, experiment);
  CHECK(at_best.number("training_hours_with_faults") < row.number("training_hours_with_faults"));
}

TEST_CASE("steps of a training come before the scenario's epochs", "[commands]") {
  Experiment experiment;
  experiment.faults.emplace();
  experiment.faults->steps = 1800;
  Row row = trained();
  set_training_columns(row, experiment);
  CHECK(*row.number("training_hours_with_faults") == Approx(1));
}

TEST_CASE("a campaign is made of trainings with faults, and its shares are all of the time", "[commands]") {
  Experiment experiment;
  experiment.campaign.emplace();
  Campaign& campaign = experiment.campaign->campaign;
  campaign.points = 6;
  campaign.groups = 3;
  campaign.training_devices = 4;
  Row row = trained();
  set_training_columns(row, experiment);
  CHECK(*row.number("makespan_hours") == Approx(200));
  CHECK(row.number("campaign_devices") == 13);
  double shares = 0;
  for (const char* column : {"device_utilization", "idle_optimizer_share", "idle_fold_share",
                             "idle_generation_share", "idle_tail_share", "idle_driver_share"}) {
    shares += *row.number(column);
  }
  CHECK(shares == Approx(1));
  CHECK(*row.number("device_utilization") == Approx(12.0 / 13));

  experiment.faults.emplace();
  experiment.faults->faults.slow = {0.5, 3};  // all wait for slow workers: three times as long
  Row slow = trained();
  set_training_columns(slow, experiment);
  CHECK(*slow.number("makespan_hours") == Approx(600));
}

TEST_CASE("a training that never ends has no time", "[commands]") {
  Experiment experiment;
  experiment.faults.emplace();
  Faults& faults = experiment.faults->faults;
  faults.node_mtbf = {1000};
  faults.checkpoints = {{360'000}, {10}};
  experiment.campaign.emplace();
  Row row = trained();
  set_training_columns(row, experiment);
  CHECK(std::get<bool>(row.at("training_finishes")) == false);
  CHECK_FALSE(row.number("training_hours_with_faults"));
  CHECK_FALSE(row.number("makespan_hours"));
}
