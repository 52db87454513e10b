#pragma once

#include <functional>
#include <vector>

#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/devices/rank_device.hpp"

namespace stepcast {

/// One collective of the plan on device memory, for a collective backend such as NCCL.
struct CollectiveCall {
  int index = 0;            ///< in Plan::collectives
  float* memory = nullptr;  ///< device memory
  std::int64_t elements = 0;
  DeviceMemory::Mark ready;  ///< the device's work that the collective waits for
  const std::vector<std::vector<Round>>* phases = nullptr;  ///< RankCollectives::phases
};

/// Executes a collective; returns when it is complete. Called on the progress thread of collectives.
using CollectiveBackend = std::function<void(const CollectiveCall& work)>;

/// Executes a collective by a backend, in one call or, if the rank packs and unpacks around each phase, phase
/// by phase.
void run_on_backend(const CollectiveBackend& backend, int index, const CollectiveBinding& work,
                    const std::vector<std::vector<Round>>& phases);

/// Executes a collective over a transport, with the hooks of the binding.
void execute_on_transport(Transport& transport, const CollectiveBinding& work,
                          const std::vector<std::vector<Round>>& phases);

}  // namespace stepcast
