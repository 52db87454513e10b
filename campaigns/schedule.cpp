#include "campaigns/schedule.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <queue>
#include <stdexcept>
#include <utility>
#include <vector>

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

/// A group of devices: the time when it is free [s], and its number.
using Group = std::pair<double, int>;

/// Devices of the master, and of the optimizers if there are several; a single optimizer runs on the master.
int driver_devices(const Campaign& campaign) {
  return 1 + (campaign.optimizers > 1 ? campaign.optimizers : 0);
}

class CampaignRun {
 public:
  CampaignRun(const Campaign& campaign, int draw)
      : campaign_(campaign),
        draw_(static_cast<std::uint32_t>(draw)),
        slots_(static_cast<std::size_t>(campaign.folds_at_once)),
        optimizers_(static_cast<std::size_t>(campaign.optimizers)) {
    for (int group = 0; group < campaign.groups; ++group) free_.push({0, group});
  }

  CampaignTimes run() {
    for (int point = 0; point < campaign_.points; ++point) evaluate(point);
    times_.makespan = {end_};
    times_.devices = static_cast<int>(campaign_devices(campaign_));
    for (; !free_.empty(); free_.pop()) times_.idle_tail += group_devices() * (end_ - free_.top().first);
    times_.idle_driver = driver_devices(campaign_) * end_;
    if (end_ > 0) times_.optimizer_busy = proposing_ / campaign_.optimizers / end_;
    return times_;
  }

 private:
  struct Proposer {
    double free = 0;
    double history = 0;  ///< points that it proposal_time
  };

  double group_devices() const { return static_cast<double>(campaign_.training_devices) * slots_.size(); }

  void evaluate(int point) {
    const auto [free, group] = free_.top();
    free_.pop();
    const bool first = campaign_.generation > 0 && point % campaign_.generation == 0;
    if (first)
      barrier_ = end_;  // all points of earlier generations are scheduled, so that their end is known
    const double ready = std::max(free, barrier_);
    times_.idle_generation += group_devices() * (ready - free);
    const double start = proposal_time(point, group, ready);
    times_.idle_optimizer += group_devices() * (start - ready);
    const double end = start + point_seconds(point);
    end_ = std::max(end_, end);
    free_.push({end, group});
  }

  /// Time at which the proposal for a group that asks at `ready` is complete.
  double proposal_time(int point, int group, double ready) {
    const auto own = static_cast<std::size_t>(group) % optimizers_.size();
    const auto first = std::min_element(optimizers_.begin(), optimizers_.end(),
                                        [](const Proposer& a, const Proposer& b) { return a.free < b.free; });
    Proposer& optimizer = campaign_.shared_history ? *first : optimizers_[own];
    const double known = campaign_.shared_history ? point : optimizer.history;
    const double seconds = campaign_.cost.base.value + campaign_.cost.cubic.value * known * known * known;
    optimizer.free = std::max(optimizer.free, ready) + seconds;
    ++optimizer.history;
    proposing_ += seconds;
    return optimizer.free;
  }

  /// Time that a group needs for a point, until the last fold ends.
  double point_seconds(int point) {
    const auto number = static_cast<std::uint32_t>(point);
    const bool stopped =
        uniform({campaign_.seed, Purpose::duration, draw_, number, 0}) < campaign_.stopped_share;
    const double training = campaign_.training.value * (stopped ? campaign_.stopped_after : 1) *
                            factor(number, 1, campaign_.point_spread);
    std::fill(slots_.begin(), slots_.end(), 0.0);
    double busy = 0;
    for (int fold = 0; fold < campaign_.folds; ++fold) {
      const double seconds =
          training * factor(number, 2 + static_cast<std::uint32_t>(fold), campaign_.fold_spread);
      *std::min_element(slots_.begin(), slots_.end()) += seconds;
      busy += seconds;
    }
    const double last = *std::max_element(slots_.begin(), slots_.end());
    times_.busy += campaign_.training_devices * busy;
    times_.idle_fold += campaign_.training_devices * (last * static_cast<double>(slots_.size()) - busy);
    return last;
  }

  /// Lognormal factor of mean 1.
  double factor(std::uint32_t point, std::uint32_t item, double sigma) const {
    if (sigma == 0) return 1;
    return std::exp(sigma * normal({campaign_.seed, Purpose::duration, draw_, point, item}) -
                    sigma * sigma / 2);
  }

  const Campaign& campaign_;
  std::uint32_t draw_;
  CampaignTimes times_;
  std::priority_queue<Group, std::vector<Group>, std::greater<>> free_;
  std::vector<double> slots_;  ///< time at which each training slot of the group is free
  std::vector<Proposer> optimizers_;
  double barrier_ = 0, end_ = 0, proposing_ = 0;
};

}  // namespace

std::int64_t campaign_devices(const Campaign& campaign) {
  return driver_devices(campaign) +
         std::int64_t{campaign.groups} * campaign.folds_at_once * campaign.training_devices;
}

CampaignTimes campaign_times(const Campaign& campaign, int draw) {
  check(campaign);
  return CampaignRun(campaign, draw).run();
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
