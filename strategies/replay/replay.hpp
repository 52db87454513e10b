#pragma once

#include "strategies/options/strategy.hpp"

namespace stepcast {

/// Replays Chakra execution traces: each node when those before it have ended, compute for the time that the
/// trace has, collectives and messages as the platform carries them.
Strategy replay_strategy();

}  // namespace stepcast
