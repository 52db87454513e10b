#pragma once

#include "scenarios/experiment.hpp"

namespace stepcast {

/// Notes the keys outside of `strategy` that the scenario gives and that have no effect on the experiment,
/// whose plan is complete; and what the plan of any strategy leaves idle.
void note_idle_options(const YamlMap& map, Experiment& experiment);

}  // namespace stepcast
