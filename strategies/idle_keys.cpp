#include "strategies/idle_keys.hpp"

#include <algorithm>

#include "core/yaml.hpp"
#include "strategies/plan.hpp"
#include "strategies/training_options.hpp"

namespace stepcast {
namespace {

constexpr auto kLoneRanks = "where each rank counts as a node";

/// What runs on the communicators that the keys are of.
struct Asked {
  int collectives = 0;
  bool all_reduces = false;
  bool rings = false;  ///< reduce-scatters and all-gathers
  bool rings_over_nodes_of_several = false;
  bool nodes_of_several = false, several_nodes = false;
};

Asked asked_of(const Plan& plan) {
  Asked asked;
  for (const Collective& one : plan.collectives) {
    const Communicator& ranks = plan.communicators[static_cast<std::size_t>(one.communicator)];
    if (!ranks.as_asked || ranks.size == 1 || one.buffer.size.value <= 0) continue;
    ++asked.collectives;
    if (one.kind == Collective::Kind::reduce_scatter || one.kind == Collective::Kind::all_gather) {
      asked.rings = true;
      asked.rings_over_nodes_of_several = asked.rings_over_nodes_of_several || ranks.ranks_per_node > 1;
    }
    if (one.kind != Collective::Kind::all_reduce) continue;
    asked.all_reduces = true;
    asked.nodes_of_several = asked.nodes_of_several || ranks.ranks_per_node > 1;
    asked.several_nodes = asked.several_nodes || ranks.size > ranks.ranks_per_node;
  }
  return asked;
}

Algorithm algorithm_of(const YamlMap& map) {
  const auto named = map.maybe("all_reduce");
  return named ? static_cast<Algorithm>(named->one_of(algorithm_names())) : Algorithm::automatic;
}

/// Keys that say more of an algorithm than its name.
void note_algorithm(const YamlMap& map, const Asked& asked, IdleKeys& idle) {
  const Algorithm algorithm = algorithm_of(map);
  const std::string with = "with all_reduce: " + algorithm_names()[static_cast<std::size_t>(algorithm)];
  const bool any = algorithm == Algorithm::automatic;
  const bool ring = any || algorithm == Algorithm::ring;
  if (!ring && !asked.rings) note_idle(map, {"channels"}, with, idle);
  if (!(ring && asked.nodes_of_several) && !asked.rings_over_nodes_of_several)
    note_idle(map, {"channels"}, kLoneRanks, idle);
  if (!any && algorithm != Algorithm::double_tree) note_idle(map, {"tree_piece"}, with, idle);
  if (algorithm != Algorithm::hierarchical)
    return note_idle(map, {"inside_node", "between_nodes"}, with, idle);
  if (!asked.nodes_of_several) note_idle(map, {"inside_node"}, kLoneRanks, idle);
  if (!asked.several_nodes) note_idle(map, {"between_nodes"}, "inside one node", idle);
}

/// The default of in_flight is as many as there are streams, and no stream takes two.
void note_streams(const YamlMap& map, const Asked& asked, bool at_once, IdleKeys& idle) {
  if (!at_once || asked.collectives == 1)
    return note_idle(map, {"streams", "in_flight"}, "where collectives run one after the other", idle);
  const auto value = map.maybe("streams"), limit = map.maybe("in_flight");
  const std::int64_t streams = value ? value->integer(1) : 1;
  if (limit && limit->integer(1) > streams)
    note_idle(map, {"in_flight"}, "above streams: " + std::to_string(streams), idle);
  if (limit && limit->integer(1) == 1 && streams > 1) note_idle(map, {"streams"}, "with in_flight: 1", idle);
}

}  // namespace

std::string to_string(const IdleKey& one) {
  return one.key + ": has no effect " + one.why;
}

void note_idle(const YamlMap& map, const std::vector<std::string>& keys, const std::string& why,
               IdleKeys& idle) {
  for (const std::string& key : keys) {
    const auto value = map.maybe(key);
    const auto known = [&](const IdleKey& one) { return value->path() == one.key; };
    if (value && std::ranges::none_of(idle, known)) idle.push_back({value->path(), why});
  }
}

void note_idle_communication(const YamlMap& map, const std::string& instead, bool at_once, Plan& plan) {
  if (plan.devices == 1) return;
  const Asked asked = asked_of(plan);
  if (asked.collectives == 0) {
    return note_idle(map, communication_keys(),
                     instead.empty() ? "where no gradients are summed between workers" : instead,
                     plan.idle_keys);
  }
  if (!asked.all_reduces) {
    note_idle(map, {"all_reduce", "inside_node", "between_nodes", "tree_piece"}, instead, plan.idle_keys);
    if (!asked.rings) note_idle(map, {"channels"}, instead, plan.idle_keys);
    if (!asked.rings_over_nodes_of_several) note_idle(map, {"channels"}, kLoneRanks, plan.idle_keys);
  } else {
    note_algorithm(map, asked, plan.idle_keys);
  }
  note_streams(map, asked, at_once, plan.idle_keys);
}

}  // namespace stepcast
