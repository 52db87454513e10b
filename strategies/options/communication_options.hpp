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

const StrategyKeys& communication_keys();
CommunicationOptions read_communication(const YamlMap& map);

/// Makes a communicator run its collectives as the scenario asks.
void apply(const CommunicationOptions& options, Communicator& communicator);

/// Notes which of communication_keys() have no effect on the plan. A plan of one worker uses none of them,
/// and nothing is noted.
/// @param instead  reason why no all-reduce runs, such as "with compression: top_k"; used where none runs
/// @param at_once  whether several collectives of a communicator can run at the same time
void note_idle_communication(const YamlMap& map, const std::string& instead, bool at_once, Plan& plan);

}  // namespace stepcast
