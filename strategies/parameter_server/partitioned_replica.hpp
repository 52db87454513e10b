#pragma once

#include "strategies/plan/setting.hpp"

namespace stepcast {

/// A mini-batch of machines that share a replica (model_parallel.hpp, `partitioned_step`).
struct ReplicaStep {
  double compute_share = 1;  ///< compute time, over that of the whole model on one machine
  Seconds exchange;          ///< time of the messages between the machines on an unshared network
};

/// Messages take the time of messages between the first two devices of the setting.
ReplicaStep replica_step(const Setting& setting, int machines, std::int64_t batch);

}  // namespace stepcast
