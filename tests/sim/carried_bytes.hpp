#pragma once

#include <cstddef>

#include "sim/fidelity/run_cost.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// The bytes of one rank's buffers in all collectives of a step of this kind and array.
inline double carried(const Plan& plan, Collective::Kind kind, Array array) {
  const CallsPerStep calls = *calls_per_step(plan);
  double sum = 0;
  for (std::size_t i = 0; i < plan.collectives.size(); ++i) {
    const Collective& one = plan.collectives[i];
    if (one.kind == kind && one.buffer.array == array) sum += calls.collectives[i] * one.buffer.size.value;
  }
  return sum;
}

}  // namespace stepcast
