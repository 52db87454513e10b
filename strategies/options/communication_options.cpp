#include "strategies/options/communication_options.hpp"

#include "strategies/plan/plan.hpp"

namespace stepcast {
namespace {

constexpr auto kLoneRanks = "where each rank counts as a node";

AllReduceChoice read_all_reduce(const YamlMap& map) {
  AllReduceChoice choice;
  if (const auto value = map.maybe("all_reduce"))
    choice.algorithm = static_cast<Algorithm>(value->one_of(algorithm_names()));
  if (const auto value = map.maybe("channels")) choice.channels = static_cast<int>(value->integer(1, 64));
  if (const auto value = map.maybe("inside_node"))
    choice.local = static_cast<LocalPart>(value->one_of(local_part_names()));
  if (const auto value = map.maybe("between_nodes")) {
    choice.network = static_cast<NetworkPart>(value->one_of(network_part_names()));
  }
  if (const auto value = map.maybe("tree_piece")) choice.tree_piece = value->bytes(1);
  return choice;
}

/// Collectives of the plan on communicators that follow the scenario's options.
struct Usage {
  int collectives = 0;
  bool all_reduces = false;
  bool rings = false;  ///< reduce-scatters and all-gathers, which are rings
  bool rings_over_nodes_of_several = false;
  bool nodes_of_several = false, several_nodes = false;
};

Usage usage_of(const Plan& plan) {
  Usage usage;
  for (const Collective& one : plan.collectives) {
    const Communicator& ranks = communicator_of(plan, one);
    if (!ranks.user_specified || ranks.size == 1 || one.buffer.size.value <= 0) continue;
    ++usage.collectives;
    if (one.kind == Collective::Kind::reduce_scatter || one.kind == Collective::Kind::all_gather) {
      usage.rings = true;
      usage.rings_over_nodes_of_several = usage.rings_over_nodes_of_several || ranks.ranks_per_node > 1;
    }
    if (one.kind != Collective::Kind::all_reduce) continue;
    usage.all_reduces = true;
    usage.nodes_of_several = usage.nodes_of_several || ranks.ranks_per_node > 1;
    usage.several_nodes = usage.several_nodes || ranks.size > ranks.ranks_per_node;
  }
  return usage;
}

Algorithm algorithm_of(const YamlMap& map) {
  const auto named = map.maybe("all_reduce");
  return named ? static_cast<Algorithm>(named->one_of(algorithm_names())) : Algorithm::automatic;
}

/// Notes keys that belong to another algorithm than the one that runs.
void note_algorithm(const YamlMap& map, const Usage& usage, IdleKeys& idle) {
  const Algorithm algorithm = algorithm_of(map);
  const std::string with = "with all_reduce: " + algorithm_names()[static_cast<std::size_t>(algorithm)];
  const bool any = algorithm == Algorithm::automatic;
  const bool ring = any || algorithm == Algorithm::ring;
  if (!ring && !usage.rings) note_idle(map, {"channels"}, with, idle);
  if (!(ring && usage.nodes_of_several) && !usage.rings_over_nodes_of_several)
    note_idle(map, {"channels"}, kLoneRanks, idle);
  if (!any && algorithm != Algorithm::double_tree) note_idle(map, {"tree_piece"}, with, idle);
  if (algorithm != Algorithm::hierarchical)
    return note_idle(map, {"inside_node", "between_nodes"}, with, idle);
  if (!usage.nodes_of_several) note_idle(map, {"inside_node"}, kLoneRanks, idle);
  if (!usage.several_nodes) note_idle(map, {"between_nodes"}, "inside one node", idle);
}

/// Notes `streams` and `in_flight` where they limit nothing. `in_flight` is by default the number of streams,
/// and a stream never runs two collectives at once.
void note_streams(const YamlMap& map, const Usage& usage, bool at_once, IdleKeys& idle) {
  if (!at_once || usage.collectives == 1)
    return note_idle(map, {"streams", "in_flight"}, "where collectives run one after the other", idle);
  const auto value = map.maybe("streams"), limit = map.maybe("in_flight");
  const std::int64_t streams = value ? value->integer(1) : 1;
  if (limit && limit->integer(1) > streams)
    note_idle(map, {"in_flight"}, "above streams: " + std::to_string(streams), idle);
  if (limit && limit->integer(1) == 1 && streams > 1) note_idle(map, {"streams"}, "with in_flight: 1", idle);
}

}  // namespace

const Keys& communication_keys() {
  static const Keys keys{
      {"all_reduce", "name",
       "automatic, ring, halving_doubling, recursive_doubling, binomial_tree, double_tree, hierarchical, mpi",
       "automatic", "algorithm that sums gradients; automatic takes the fastest for each buffer size"},
      {"channels", "integer", "1 to 64", "1", "rings that share each buffer"},
      {"inside_node", "name", "reduce_scatter, leader, flat", "reduce_scatter",
       "hierarchical: algorithm inside a node"},
      {"between_nodes", "name", "ring, halving_doubling, binomial_tree", "halving_doubling",
       "hierarchical: algorithm between nodes"},
      {"tree_piece", "bytes", ">= 1 B", "256 KiB", "double_tree: size of the pieces in its pipeline"},
      {"streams", "integer", "1 to 1024", "1",
       "streams; the collectives of one stream run one after the other"},
      {"in_flight", "integer", "1 to 1024", "streams", "collectives that run at the same time"}};
  return keys;
}

CommunicationOptions read_communication(const YamlMap& map) {
  CommunicationOptions options;
  options.all_reduce = read_all_reduce(map);
  if (const auto value = map.maybe("streams")) options.streams = static_cast<int>(value->integer(1, 1024));
  options.in_flight = options.streams;
  if (const auto value = map.maybe("in_flight"))
    options.in_flight = static_cast<int>(value->integer(1, 1024));
  return options;
}

void apply(const CommunicationOptions& options, Communicator& communicator) {
  communicator.all_reduce = options.all_reduce;
  communicator.streams = options.streams;
  communicator.in_flight = options.in_flight;
  communicator.user_specified = true;
}

void note_idle_communication(const YamlMap& map, const std::string& instead, bool at_once, Plan& plan) {
  if (plan.devices == 1) return;
  const Usage usage = usage_of(plan);
  if (usage.collectives == 0) {
    return note_idle(map, names_of(communication_keys()),
                     instead.empty() ? "where no gradients are summed between workers" : instead,
                     plan.idle_keys);
  }
  if (!usage.all_reduces) {
    note_idle(map, {"all_reduce", "inside_node", "between_nodes", "tree_piece"}, instead, plan.idle_keys);
    if (!usage.rings) note_idle(map, {"channels"}, instead, plan.idle_keys);
    if (!usage.rings_over_nodes_of_several) note_idle(map, {"channels"}, kLoneRanks, plan.idle_keys);
  } else {
    note_algorithm(map, usage, plan.idle_keys);
  }
  note_streams(map, usage, at_once, plan.idle_keys);
}

}  // namespace stepcast
