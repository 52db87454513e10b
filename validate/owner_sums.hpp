#pragma once

#include <vector>

#include "strategies/compressed_gradient.hpp"
#include "validate/play.hpp"

namespace stepcast {

/// A sum of compressed gradients over `ranks`, as `rank` plays it, in phases. One bit and halves: everyone's
/// shares straight to their owners, in rounds of one message each way; then a ring gathers the owners' sums.
/// Both send and receive what a ring all-reduce does. Top-k: a ring gathers what each sends.
std::vector<std::vector<Round>> owner_sums(const WireLayout& layout, Compression kind, int ranks, int rank);

}  // namespace stepcast
