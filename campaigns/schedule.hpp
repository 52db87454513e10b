#pragma once

#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "core/typed_numbers.hpp"

namespace stepcast {

/// Time that an optimizer needs for one proposal: base + cubic n^3, where n is the number of points that it
/// proposed before. A Gaussian process factorizes an n x n matrix; for an evolutionary search cubic = 0.
struct ProposalCost {
  Seconds base, cubic;
};

/// A hyper-parameter search with cross-validation. It takes
///   N = 1 + N_G x N_F x (N_M x N_W x N_GPU)  devices, and N_sk more if N_sk > 1.
/// Source: J.-R. Vlimant et al., "Training and optimization of neural networks and generative adversarial
/// networks over distributed resources", slides, "Putting all features together" and the layouts with N_sk
/// optimizers.
struct Campaign {
  int points = 1;            ///< points that are evaluated
  int groups = 1;            ///< N_G: groups of devices; each evaluates one point at a time
  int folds = 1;             ///< K: trainings of one point (cross-validation)
  int folds_at_once = 1;     ///< N_F: folds that a group trains at once
  int training_devices = 1;  ///< devices of one training: N_M x N_W x N_GPU
  Seconds training;          ///< mean time of one fold, without early stopping
  /// Sigma of the lognormal factor of a point's time (mean 1): larger networks take longer.
  double point_spread = 0;
  double fold_spread = 0;    ///< sigma of the lognormal factor of a fold's time (mean 1)
  double stopped_share = 0;  ///< share of points that are stopped early
  double stopped_after = 1;  ///< part of the training after which these points are stopped
  /// Points that must all end before the next are proposed; 0: a free group asks at once.
  int generation = 0;
  int optimizers = 1;  ///< N_sk: optimizers that propose points
  /// True: every optimizer learns from all points; false: from those of its groups.
  bool shared_history = true;
  ProposalCost cost;
  std::uint64_t seed = 1;
};

/// Number of devices by the formula of Campaign.
std::int64_t campaign_devices(const Campaign& campaign);

/// Breakdown of the time of the devices [device seconds]: busy + all idle times = devices x makespan.
struct CampaignTimes {
  Seconds makespan;
  int devices = 1;
  double busy = 0;
  double idle_optimizer = 0;   ///< waiting for a proposal
  double idle_fold = 0;        ///< waiting for the slowest fold of a point
  double idle_generation = 0;  ///< waiting for the last point of a generation
  double idle_tail = 0;        ///< at the end, when no points are left
  double idle_driver = 0;      ///< devices of master and optimizers, which never train
  double optimizer_busy = 0;   ///< share of the makespan in which an optimizer works, mean over optimizers
};

/// A proposal of an optimizer for a free group.
struct CampaignProposal {
  int group = 0, optimizer = 0;
  double asked = 0;  ///< when the optimizer begins: it knows the points that have ended by then [s]
  double start = 0;  ///< when the proposal is complete and the trainings of the point start [s]
};

/// The event loop of a campaign, point by point: who asks whom at which time, and what the devices wait for.
/// The caller gives the durations of the trainings. It calls `propose` and then `train` for every point.
class CampaignSchedule {
 public:
  /// @throws std::invalid_argument for counts < 1, negative times, or shares outside [0, 1]
  explicit CampaignSchedule(const Campaign& campaign);

  /// The group that is free first asks. Successive proposals of an optimizer never ask earlier.
  CampaignProposal propose();
  /// The group waits until `time` because its generation has not ended.
  void wait(CampaignProposal& proposal, double time);
  /// Trains the folds of a point, each on the training slot of the group that is free first.
  /// @return when the last one ends [s]
  double train(const CampaignProposal& proposal, const std::vector<Seconds>& folds);
  /// The breakdown, after the last point.
  CampaignTimes times() const;

 private:
  struct Proposer {
    double free = 0;
    double history = 0;  ///< points that it proposed
  };
  /// A group of devices: the time when it is free [s], and its number.
  using Group = std::pair<double, int>;

  double group_devices() const;

  Campaign campaign_;
  CampaignTimes times_;
  std::priority_queue<Group, std::vector<Group>, std::greater<>> free_;
  std::vector<Proposer> optimizers_;
  int points_ = 0;  ///< proposed so far
  double barrier_ = 0, end_ = 0, proposing_ = 0;
};

/// Simulates a campaign of drawn durations. Free groups ask for points in order of time, then of number. An
/// optimizer serves one group at a time. A fold starts on the training slot of its group that is free first.
/// `draw` selects the random durations.
/// @throws std::invalid_argument for counts < 1, negative times, or shares outside [0, 1]
CampaignTimes campaign_times(const Campaign& campaign, int draw = 0);

/// Means over draws 0 .. draws - 1.
CampaignTimes mean_campaign_times(const Campaign& campaign, int draws);

}  // namespace stepcast
