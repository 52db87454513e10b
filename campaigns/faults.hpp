#pragma once

#include <cstdint>
#include <vector>

#include "core/typed_numbers.hpp"

namespace stepcast {

/// The response of a training to the failure of a node.
enum class FailureResponse {
  restart,  ///< all nodes wait for the repair and restart from the last checkpoint (synchronous training)
  shrink,   ///< the other nodes continue until the node is back (asynchronous and block training)
};

/// The rule by which a training writes checkpoints.
struct Checkpoints {
  Seconds interval = {};    ///< training time between two checkpoints; 0: no checkpoints
  Seconds write = {};       ///< time to write one to the storage: size / bandwidth
  bool background = false;  ///< true: written while training continues; false: training waits
  Seconds snapshot = {};    ///< background: time for which training waits while the state is copied
};

/// Periods in which some workers are slow: a busy host, a hot device, a bad link.
struct SlowPeriods {
  double share = 0;    ///< share of the workers that are slow in such a period
  double factor = 1;   ///< slowdown of these workers, >= 1
  Seconds lasts = {};  ///< duration of a slow period
  Seconds every = {};  ///< mean time from the end of a slow period to the next; 0: always slow
};

/// Links that fail together: dead, or with less bandwidth, until they are repaired.
struct LinkFault {
  Seconds at{};      ///< time from the start of the training at which they fail once; only without `mtbf`
  Seconds mtbf{};    ///< mean time from a repair to the next failure, exponential; 0: they fail once
  Seconds lasts{};   ///< time until they are repaired
  double speed = 1;  ///< speed of the training meanwhile, over its usual speed; at most 1
  int cut_off = 0;   ///< nodes that no route leads to meanwhile
};

/// A training and the faults that may happen during it.
struct Faults {
  Seconds training;  ///< training time without faults and checkpoints: steps x seconds a step
  /// Nodes that it runs on, or devices, if these fail one by one; they hold equally many workers.
  int nodes = 1;
  Seconds node_mtbf;  ///< mean time between failures of one node, exponential; 0: nodes never fail
  Seconds repair;     ///< time until the node, or a replacement, is available
  Seconds restart;    ///< time from then until it trains again
  FailureResponse response = FailureResponse::restart;
  /// shrink: time between two contributions of a worker; a failure loses the one that has not been sent.
  Seconds exchange;
  Checkpoints checkpoints;
  SlowPeriods slow;
  std::vector<LinkFault> links;
  std::uint64_t seed = 1;
};

/// Breakdown of the time of a training: total = training + the six losses. For several draws, their means.
struct TrainingTime {
  Seconds total;
  Seconds checkpoints;  ///< training waited for a checkpoint
  Seconds rework;       ///< lost work that was done again
  Seconds restart;      ///< repair and restart, while all nodes waited
  Seconds missing;      ///< delay because workers were missing (shrink)
  Seconds slow;         ///< delay because workers were slow
  Seconds links;        ///< delay because failed links slowed communication
  double failures = 0;  ///< of nodes
  double link_failures = 0;
  bool finished = true;  ///< false: the simulation gave up, because failures come faster than checkpoints
};

/// Simulates one draw event by event. Checkpoints are written after every `interval` of training and at its
/// end; the training waits for a last checkpoint in the background.
///
/// With `restart`, a failure loses the work after the last complete checkpoint, and a checkpoint that is
/// being written. Nodes also fail during repair, checkpoint and restart; each failure begins repair and
/// restart anew. With `shrink`, a failed node is missing for repair + restart and loses its share of a
/// uniformly drawn part of `exchange`. The model survives as long as one node does; after that the training
/// continues from the last checkpoint. In a slow period, synchronous workers all wait for the slow ones
/// (speed 1 / factor); asynchronous workers do not (speed 1 - share (1 - 1 / factor)).
///
/// Links that fail slow the work; if several have failed, the slowest counts. Links that cut nodes off act as
/// the failure of these nodes until the links are repaired; the training needs `restart` in addition.
TrainingTime training_time(const Faults& faults, int draw);

/// Means over draws 0 .. draws - 1. @param totals  receives the total time of each draw [s]
TrainingTime mean_training_time(const Faults& faults, int draws, std::vector<double>* totals = nullptr);

}  // namespace stepcast
