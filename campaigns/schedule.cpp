#include "campaigns/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/random.hpp"

namespace stepcast {
namespace {

void check(const Campaign& campaign) {
  for (const int count : {campaign.points, campaign.groups, campaign.folds, campaign.folds_at_once,
                          campaign.training_devices, campaign.optimizers}) {
    if (count < 1) throw std::invalid_argument("campaign: counts must be >= 1");
  }
  if (campaign.generation < 0) throw std::invalid_argument("campaign: generation must be >= 0");
  for (const Seconds time : {campaign.training, campaign.cost.base, campaign.cost.cubic}) {
    if (!(time.value >= 0)) throw std::invalid_argument("campaign: times must be >= 0");
  }
  for (const double share : {campaign.stopped_share, campaign.stopped_after}) {
    if (!(share >= 0 && share <= 1)) throw std::invalid_argument("campaign: shares must be from 0 to 1");
  }
}

/// Devices of the master, and of the optimizers if there are several; a single optimizer runs on the master.
int driver_devices(const Campaign& campaign) {
  return 1 + (campaign.optimizers > 1 ? campaign.optimizers : 0);
}

/// Lognormal factor of mean 1 for the time of a point (item 1) or of one of its folds (items from 2).
double factor(const Campaign& campaign, int draw, std::uint32_t point, std::uint32_t item, double sigma) {
  if (sigma == 0) return 1;
  const RandomKey key{campaign.seed, Purpose::duration, static_cast<std::uint32_t>(draw), point, item};
  return std::exp(sigma * normal(key) - sigma * sigma / 2);
}

/// Drawn durations of the folds of a point.
std::vector<Seconds> drawn_folds(const Campaign& campaign, int draw, int point) {
  const std::uint32_t number = point;
  const RandomKey key{campaign.seed, Purpose::duration, static_cast<std::uint32_t>(draw), number, 0};
  const bool stopped = uniform(key) < campaign.stopped_share;
  const double training = campaign.training.value * (stopped ? campaign.stopped_after : 1) *
                          factor(campaign, draw, number, 1, campaign.point_spread);
  std::vector<Seconds> folds;
  for (int fold = 0; fold < campaign.folds; ++fold) {
    const auto item = 2 + static_cast<std::uint32_t>(fold);
    folds.push_back({training * factor(campaign, draw, number, item, campaign.fold_spread)});
  }
  return folds;
}

}  // namespace

CampaignSchedule::CampaignSchedule(const Campaign& campaign) : campaign_(campaign) {
  check(campaign);
  optimizers_.resize(campaign.optimizers);
  for (int group = 0; group < campaign.groups; ++group) free_.push({0, group});
}

double CampaignSchedule::group_devices() const {
  return 1.0 * campaign_.training_devices * campaign_.folds_at_once;
}

CampaignProposal CampaignSchedule::propose() {
  const auto [free, group] = free_.top();
  free_.pop();
  const int point = points_++;
  const bool first = campaign_.generation > 0 && point % campaign_.generation == 0;
  if (first) barrier_ = end_;  // all points of earlier generations are scheduled, so that their end is known
  const double ready = std::max(free, barrier_);
  times_.idle_generation += group_devices() * (ready - free);

  const auto first_free =
      std::min_element(optimizers_.begin(), optimizers_.end(),
                       [](const Proposer& a, const Proposer& b) { return a.free < b.free; });
  const int number =
      campaign_.shared_history ? (first_free - optimizers_.begin()) : group % campaign_.optimizers;
  Proposer& optimizer = optimizers_[number];
  const double known = campaign_.shared_history ? point : optimizer.history++;
  const double seconds = campaign_.cost.base.value + campaign_.cost.cubic.value * known * known * known;
  const double asked = std::max(optimizer.free, ready);
  optimizer.free = asked + seconds;
  proposing_ += seconds;
  times_.idle_optimizer += group_devices() * (optimizer.free - ready);
  return {group, number, asked, optimizer.free};
}

void CampaignSchedule::wait(CampaignProposal& proposal, double time) {
  const double waits = std::max(0.0, time - proposal.asked);
  times_.idle_generation += group_devices() * waits;
  proposal.asked += waits;
  proposal.start += waits;
}

double CampaignSchedule::train(const CampaignProposal& proposal, const std::vector<Seconds>& folds) {
  std::vector<double> slots(campaign_.folds_at_once);  // when each is free
  double busy = 0;
  for (const Seconds fold : folds) {
    *std::min_element(slots.begin(), slots.end()) += fold.value;
    busy += fold.value;
  }
  const double last = *std::max_element(slots.begin(), slots.end());
  times_.busy += campaign_.training_devices * busy;
  times_.idle_fold += campaign_.training_devices * (last * slots.size() - busy);
  const double end = proposal.start + last;
  end_ = std::max(end_, end);
  free_.push({end, proposal.group});
  return end;
}

CampaignTimes CampaignSchedule::times() const {
  CampaignTimes times = times_;
  times.makespan = {end_};
  times.devices = campaign_devices(campaign_);
  for (auto free = free_; !free.empty(); free.pop())
    times.idle_tail += group_devices() * (end_ - free.top().first);
  times.idle_driver = driver_devices(campaign_) * end_;
  if (end_ > 0) times.optimizer_busy = proposing_ / campaign_.optimizers / end_;
  return times;
}

std::int64_t campaign_devices(const Campaign& campaign) {
  return driver_devices(campaign) +
         std::int64_t{campaign.groups} * campaign.folds_at_once * campaign.training_devices;
}

CampaignTimes campaign_times(const Campaign& campaign, int draw) {
  CampaignSchedule schedule(campaign);
  for (int point = 0; point < campaign.points; ++point)
    schedule.train(schedule.propose(), drawn_folds(campaign, draw, point));
  return schedule.times();
}

CampaignTimes mean_campaign_times(const Campaign& campaign, int draws) {
  CampaignTimes sum;
  for (int draw = 0; draw < draws; ++draw) {
    const CampaignTimes one = campaign_times(campaign, draw);
    sum.makespan += one.makespan / draws;
    for (const auto part : {&CampaignTimes::busy, &CampaignTimes::idle_optimizer, &CampaignTimes::idle_fold,
                            &CampaignTimes::idle_generation, &CampaignTimes::idle_tail,
                            &CampaignTimes::idle_driver, &CampaignTimes::optimizer_busy}) {
      sum.*part += one.*part / draws;
    }
    sum.devices = one.devices;
  }
  return sum;
}

}  // namespace stepcast
