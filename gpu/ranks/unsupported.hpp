#pragma once

#include <string>

#include "scenarios/experiment/experiment.hpp"

namespace stepcast {

/// Why ranks on GPUs cannot run a point; empty if they can.
std::string unsupported_on_gpus(const Experiment& experiment, int ranks);

}  // namespace stepcast
