#pragma once

#include <functional>
#include <vector>

#include "validate/play.hpp"
#include "validate/rank_device.hpp"

namespace stepcast {

/// A collective of the plan as whoever carries it needs it.
struct CarriedWork {
  int index = 0;            ///< in the plan
  float* memory = nullptr;  ///< on the device
  std::int64_t elements = 0;
  DeviceMemory::Mark ready;                                 ///< what the device does before
  const std::vector<std::vector<Round>>* phases = nullptr;  ///< RealCollectives::phases
};

/// Carries one; returns when it is through. On the communication thread.
using Carry = std::function<void(const CarriedWork& work)>;

/// Has one carried; phase by phase where the rank does something around each.
void carry_work(const Carry& carry, int index, const CollectiveWork& work,
                const std::vector<std::vector<Round>>& phases);

/// Plays one over a transport, with what the rank does around it.
void play_work(Transport& transport, const CollectiveWork& work,
               const std::vector<std::vector<Round>>& phases);

}  // namespace stepcast
