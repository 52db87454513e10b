#pragma once

#include <span>

#include "sim/max_min_links.hpp"
#include "sim/network.hpp"
#include "sim/paths.hpp"

namespace stepcast {

/// What takes messages from one endpoint to another.
struct Carrier {
  Engine& engine;
  Paths& paths;
  MaxMinLinks* links;  ///< that share out their bandwidth; none: SimGrid does

  void start_flow(std::span<const int> over, Bytes size, Engine::Callback&& done) const;
};

/// What to play; it outlives the play.
struct MessagesOf {
  const Schedule& schedule;
  const Placement& placement;
  Bytes buffer;
};

/// Every message of a schedule, each after its latency, over its own links: the oracle of the cheaper forms.
void play_messages(const Carrier& carrier, const MessagesOf& what, Engine::Callback done);

struct PhasePlay {
  int pattern = 0;
  Bytes buffer;
  int segments = 1;
};

/// Phase after phase: the latencies of its rounds, then its bytes as one flow an edge (fluid) or one in all
/// (coupled).
void play_phases(SimNetwork& network, const PhasePlay& what, Engine::Callback done);

}  // namespace stepcast
