#pragma once

#include <optional>

#include "strategies/plan.hpp"

namespace stepcast {

/// What one worker of each role calls in a step.
struct Calls {
  std::vector<double> collectives;  ///< of each of the plan
  double messages = 0;              ///< of all workers, beside collectives
  double steps = 1;                 ///< of the run
};

/// Runs the program of every role in a world in which nothing takes time. Nothing for plans whose programs do
/// what messages tell them. @throws std::logic_error if one waits all the same
std::optional<Calls> calls_a_step(const Plan& plan);

}  // namespace stepcast
