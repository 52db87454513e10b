#pragma once

#include <memory>

#include "strategies/model_parallel/layer_segments.hpp"
#include "strategies/parameter_server/server_options.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {

/// Workers whose networks are partitioned over several machines, as under `kind: model_parallel`. Every
/// machine is a rank with a program of its own. The passes of a mini-batch stop at each exchange of the
/// machines of a replica, so the slowest of them decides.
struct MachineReplicas {
  /// Begun: communicator 0 has the machines of each replica, and the collectives are those of the passes.
  Plan plan;
  TimedWorkload part;  ///< of the machine with the largest part
  std::shared_ptr<const PassSegments> passes;
};

/// @throws InputError at `machines_per_replica` for a network that cannot be partitioned like this
MachineReplicas machine_replicas(const Setting& setting, const ServerOptions& options);

}  // namespace stepcast
