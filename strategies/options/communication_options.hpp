#pragma once

#include <string>

#include "strategies/options/strategy.hpp"

namespace stepcast {

/// `all_reduce` and the keys that say how it runs.
struct CommunicationOptions {
  AllReduceChoice all_reduce;
  int streams = 1;    ///< collectives of one stream run one after the other
  int in_flight = 1;  ///< collectives at once, over all streams
};

const Keys& communication_keys();
CommunicationOptions read_communication(const YamlMap& map);

/// Makes a communicator run its collectives as the scenario asks.
void apply(const CommunicationOptions& options, Communicator& communicator);

/// Adds a note to the plan for each of communication_keys() that the scenario sets and the plan does not use.
/// A plan of one worker gets no notes.
/// @param instead  reason why the plan has no all-reduce, such as "with compression: top_k"
/// @param at_once  whether several collectives of a communicator can run at the same time
void note_idle_communication(const YamlMap& map, const std::string& instead, bool at_once, Plan& plan);

}  // namespace stepcast
