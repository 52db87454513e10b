#pragma once

#include "models/trace.hpp"

namespace stepcast {

/// Adds the samples of another capture of the same network and batch, as from another worker: a sample of the
/// whole is one of either. @throws std::invalid_argument where their layers differ
void join(Trace& trace, const Trace& other);

}  // namespace stepcast
