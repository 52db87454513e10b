#pragma once

#include "strategies/plan.hpp"

namespace stepcast {

/// What one worker of each role calls in a step.
struct Calls {
  std::vector<double> collectives;  ///< of each of the plan
  double messages = 0;              ///< of all workers, beside collectives
};

/// Runs the program of every role in a world in which nothing takes time. For synchronous plans, whose
/// programs do the same whatever they receive. @throws std::logic_error if one waits all the same
Calls calls_a_step(const Plan& plan);

}  // namespace stepcast
