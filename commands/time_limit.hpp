#pragma once

#include "commands/run.hpp"
#include "core/units.hpp"
#include "scenarios/experiment.hpp"

namespace stepcast {

/// Messages that one simulation plays one by one with SimGrid's own sharing; 0 where the form is a cheap one.
double detailed_messages(const Experiment& experiment);

/// Processor time that they take, roughly: each is weighed against all others that are under way.
Seconds detailed_time(const Experiment& experiment);

/// Throws LimitError where one simulation of the largest point would take longer than the limit.
void check_time(const Experiment& largest, const RunOptions& options);

}  // namespace stepcast
