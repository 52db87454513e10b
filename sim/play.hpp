#pragma once

#include "sim/network.hpp"

namespace stepcast {

/// Every message of a pattern, each after its latency, over its own links: the oracle of the cheaper forms.
void play_messages(SimNetwork& network, int pattern, Bytes buffer, Engine::Callback done);

struct PhasePlay {
  int pattern = 0;
  Bytes buffer;
  int segments = 1;
};

/// Phase after phase: the latencies of its rounds, then its bytes as one flow an edge (fluid) or one in all
/// (coupled).
void play_phases(SimNetwork& network, const PhasePlay& what, Engine::Callback done);

}  // namespace stepcast
