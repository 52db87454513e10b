#pragma once

#include "models/trace.hpp"

namespace stepcast {

/// Adds the samples of another capture of the same network and batch, made by another rank at the same time:
/// workers replay either's. @throws std::invalid_argument where their layers differ
void join(Trace& trace, const Trace& other);

}  // namespace stepcast
