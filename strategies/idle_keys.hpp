#pragma once

#include <string>
#include <vector>

namespace stepcast {

struct Plan;
class YamlMap;

/// A key that a scenario gives and that changes nothing: it is accepted, since one point of a sweep may need
/// it and another not, and said.
struct IdleKey {
  std::string key;  ///< "strategy.channels"
  std::string why;  ///< "with all_reduce: halving_doubling"
};
using IdleKeys = std::vector<IdleKey>;

/// "strategy.channels: has no effect with all_reduce: halving_doubling"
std::string to_string(const IdleKey& one);

/// Adds those of `keys` that the mapping gives.
void note_idle(const YamlMap& map, const std::vector<std::string>& keys, const std::string& why,
               IdleKeys& idle);

/// Adds what the plan leaves idle of the keys of communication (training_options.hpp). A plan of one worker
/// leaves all of them idle, and nothing is said of it.
/// @param instead  why no all-reduce runs, where none does, such as "with compression: top_k"
/// @param at_once  whether several collectives of a communicator can be under way
void note_idle_communication(const YamlMap& map, const std::string& instead, bool at_once, Plan& plan);

}  // namespace stepcast
