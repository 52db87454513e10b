#pragma once

#include "core/keys.hpp"

namespace stepcast {

/// All keys of a scenario file: those of the scenario as a whole, then those of one run.
const Keys& scenario_keys();

/// Keys of the scenario as a whole (docs/reference/scenario-sweep.md), which no point of its sweep has.
const Keys& whole_scenario_keys();

// Keys of one run (docs/reference/scenarios.md).
const Keys& run_keys();
const Keys& passes_keys();
const Keys& background_keys();
const Keys& memory_keys();

// Entries of the lists of a scenario.
const Keys& assumed_keys();
const Keys& measured_keys();
const Keys& published_keys();

// Keys of a whole training (docs/reference/faults.md and campaigns.md).
const Keys& faults_keys();
const Keys& campaign_keys();

// Keys of `learning` (docs/reference/learning-keys.md).
const Keys& learning_keys();

// Keys of a software stack, a file of strategies/stacks/ (docs/reference/software-stacks.md).
const Keys& stack_keys();

}  // namespace stepcast
