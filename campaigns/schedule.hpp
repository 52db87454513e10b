#pragma once

#include <cstdint>

#include "core/units.hpp"

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

/// Simulates a campaign. Free groups ask for points in order of time, then of number. An optimizer serves one
/// group at a time. A fold starts on the training slot of its group that is free first. `draw` selects the
/// random durations.
/// @throws std::invalid_argument for counts < 1, negative times, or shares outside [0, 1]
CampaignTimes campaign_times(const Campaign& campaign, int draw = 0);

/// Means over draws 0 .. draws - 1.
CampaignTimes mean_campaign_times(const Campaign& campaign, int draws);

}  // namespace stepcast
