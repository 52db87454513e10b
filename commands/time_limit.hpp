#pragma once

#include "commands/run.hpp"
#include "core/units.hpp"
#include "scenarios/experiment.hpp"

namespace stepcast {

/// What one simulation plays one by one with SimGrid's own sharing; nothing where the form is a cheap one.
struct Detailed {
  double messages = 0;  ///< or flows of the form fluid
  Seconds time;         ///< of the processor, roughly: each is weighed against all others that are under way
};
Detailed detailed(const Experiment& experiment);

/// Throws LimitError where one simulation of the largest point would take longer than the limit.
void check_time(const Experiment& largest, const RunOptions& options);

}  // namespace stepcast
