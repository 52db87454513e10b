#pragma once

#include <string>

#include "scenarios/experiment.hpp"

namespace stepcast {

/// What a point needs that ranks on GPUs have not, in words; empty: nothing.
std::string why_not_on_gpus(const Experiment& experiment, int ranks);

}  // namespace stepcast
