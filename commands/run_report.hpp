#pragma once

#include "commands/outputs.hpp"
#include "scenarios/experiment.hpp"

namespace stepcast {

/// Prints the table of a scenario, and what must be known beside it: points that do not fit, calibrated
/// values, assumptions that matter, doubts about traces. @param largest  experiment
void print_outputs(const Outputs& outputs, const Simulations& all, const Scenario& scenario,
                   const Experiment& largest);

}  // namespace stepcast
