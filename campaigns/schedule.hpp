#pragma once

#include <cstdint>

#include "core/units.hpp"

namespace stepcast {

/// Seconds that an optimizer needs for one proposal: base + cubic n^3, n = points that it proposed before
/// (told or under way). A Gaussian process factors an n x n matrix; an evolution has cubic = 0.
struct ProposalCost {
  Seconds base, cubic;
};

/// A hyper-parameter search with cross-validation on
///   N = 1 + N_G x N_F x (N_M x N_W x N_GPU)  devices, and N_sk more where N_sk > 1.
/// Source: J.-R. Vlimant et al., "Training and optimization of neural networks and generative adversarial
/// networks over distributed resources", slides, "Putting all features together" and the layouts with N_sk
/// optimizers.
struct Campaign {
  int points = 1;            ///< that are evaluated
  int groups = 1;            ///< N_G: points at once
  int folds = 1;             ///< K: trainings of one point
  int folds_at_once = 1;     ///< N_F: of them at once
  int training_devices = 1;  ///< of one training: N_M x N_W x N_GPU
  Seconds training;          ///< mean of one fold, without early stopping
  double point_spread = 0;   ///< sigma of ln of a point's factor (mean 1): larger networks take longer
  double fold_spread = 0;    ///< sigma of ln of a fold's factor (mean 1)
  double stopped_share = 0;  ///< share of points that are stopped early
  double stopped_after = 1;  ///< part of the training after which they are
  int generation =
      0;  ///< points that all must end before the next are proposed; 0: each asks when it is free
  int optimizers = 1;          ///< N_sk
  bool shared_history = true;  ///< every optimizer learns from all points; else from those of its own groups
  ProposalCost cost;
  std::uint64_t seed = 1;
};

/// Devices of the formula above.
std::int64_t campaign_devices(const Campaign& campaign);

/// Where the time of the devices went [device seconds]: busy + all idle = devices x makespan.
struct CampaignTimes {
  Seconds makespan;
  int devices = 1;
  double busy = 0;
  double idle_optimizer = 0;   ///< waiting for a proposal
  double idle_fold = 0;        ///< waiting for the slowest fold of a point
  double idle_generation = 0;  ///< waiting for the last point of a generation
  double idle_tail = 0;        ///< nothing is left to try
  double idle_driver = 0;      ///< devices of master and optimizers, which never train
  double optimizer_busy = 0;   ///< share of the makespan in which an optimizer works, mean over optimizers
};

/// Plays a campaign: groups that are free ask in order of time, then of number; an optimizer serves one group
/// at a time. Folds of a point start on the lane that is free first. `draw` picks other random durations.
/// @throws std::invalid_argument for counts < 1, negative times, or shares outside [0, 1]
CampaignTimes campaign_times(const Campaign& campaign, int draw = 0);

/// Means over draws 0 .. draws - 1.
CampaignTimes mean_campaign_times(const Campaign& campaign, int draws);

}  // namespace stepcast
