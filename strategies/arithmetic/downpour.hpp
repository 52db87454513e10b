#pragma once

#include <span>

namespace stepcast {

/// sum += gradient: what a worker gathers between two pushes, and a server between two updates.
///
/// Source: J. Dean et al., "Large scale distributed deep networks", NIPS 2012, section 4.1 and algorithm 1
/// (Downpour SGD); the server's optimizers: optimizer.hpp.
/// @throws std::invalid_argument if lengths differ
void accumulate(std::span<const float> gradient, std::span<float> sum);

}  // namespace stepcast
