#pragma once

#include <string>

#include "models/cut.hpp"

namespace stepcast {

/// What the kernels here cannot compute of such a cut, though it can be forecast; empty if they can.
/// @param batch  samples of a replica at once
std::string kernel_problem(const Model& model, const SampleCut& cut, std::int64_t batch);

}  // namespace stepcast
