#include "sim/collectives/collective_schedules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "sim/patterns/point_to_point_schedules.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

namespace {

std::optional<NcclOperation> operation_of(Collective::Kind kind) {
  switch (kind) {
    case Collective::Kind::all_reduce:
      return NcclOperation::all_reduce;
    case Collective::Kind::reduce_scatter:
      return NcclOperation::reduce_scatter;
    case Collective::Kind::all_gather:
      return NcclOperation::all_gather;
    case Collective::Kind::broadcast:
      return NcclOperation::broadcast;
    case Collective::Kind::reduce:
      return NcclOperation::reduce;
    case Collective::Kind::all_to_all:
      return NcclOperation::all_to_all;
    case Collective::Kind::exchange:
      break;
  }
  return std::nullopt;
}

/// Devices that a group has on a node, as numbers in the node.
struct NodeOfGroup {
  int node = 0;
  std::vector<int> devices;
};

/// The nodes of group `index`, in ascending order; none if a rank is no device.
std::vector<NodeOfGroup> nodes_of_group(const Platform& platform, const Plan& plan,
                                        const Communicator& communicator, int index) {
  std::vector<int> endpoints;
  for (int i = 0; i < communicator.size; ++i) {
    const RankId rank = communicator.ranks[index * communicator.size + i];
    endpoints.push_back(plan.endpoints[rank]);
    if (endpoints.back() >= platform.devices()) return {};
  }
  std::ranges::sort(endpoints);
  std::vector<NodeOfGroup> nodes;
  for (const int endpoint : endpoints) {
    const int node = platform.node_of(endpoint);
    if (nodes.empty() || nodes.back().node != node) nodes.push_back({node, {}});
    nodes.back().devices.push_back(endpoint % platform.devices_per_node);
  }
  return nodes;
}

}  // namespace

std::vector<NcclRanks> nccl_ranks(const Platform& platform, const Plan& plan,
                                  const Communicator& communicator) {
  if (platform.software.nccl == 0) return {};
  std::vector<std::vector<NodeOfGroup>> groups;
  std::vector<int> groups_in(platform.nodes, 0);  // by node
  for (int group = 0; group < communicator.groups(); ++group) {
    groups.push_back(nodes_of_group(platform, plan, communicator, group));
    if (groups.back().empty()) return {};
    for (const NodeOfGroup& one : groups.back()) ++groups_in[one.node];
  }
  std::vector<NcclRanks> kinds;
  for (const auto& nodes : groups) {
    for (const NodeOfGroup& one : nodes) {
      if (one.devices.size() != nodes.front().devices.size() ||
          std::ranges::adjacent_find(one.devices) != one.devices.end())
        return {};
      NcclRanks kind{static_cast<int>(nodes.size()), one.devices, groups_in[one.node]};
      if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(std::move(kind));
    }
  }
  return kinds;
}

std::optional<NcclTime> nccl_time_of(const Simulation& simulation, const Collective& collective,
                                     const std::vector<NcclRanks>& ranks, const AllReduceChoice& asked) {
  const Platform& platform = *simulation.platform;
  const auto operation = operation_of(collective.kind);
  if (!operation) return std::nullopt;
  Software software = platform.software;
  if (operation == NcclOperation::all_reduce) {
    if (asked.algorithm != Algorithm::automatic && asked.algorithm != Algorithm::ring) return std::nullopt;
    if (asked.algorithm == Algorithm::ring) software.trees = false;
  }
  Bytes size = collective.buffer.size;
  if (operation == NcclOperation::all_to_all)  // nccl-tests: one rank's data
    size.value /= communicator_of(*simulation.plan, collective).size;
  std::optional<NcclTime> slowest;  // the node that all others wait for
  for (const NcclRanks& node : ranks) {
    NcclChannels channels = nccl_channels(platform, node);
    for (BytesPerSecond* rate :
         {&channels.rings, &channels.port, &channels.network, &channels.nic, &channels.host_copy})
      *rate = simulation.bandwidths.common_factor() * *rate;
    channels.latency_factor = simulation.latency_factor;
    if (collective.fills_nics) channels.network = (1 / kDirectNetworkShare) * channels.network;
    const NcclTime time = nccl_time(software, channels, *operation, size);
    if (!slowest || slowest->time < time.time) slowest = time;
  }
  return slowest;
}

Algorithm schedule_algorithm(const NcclTime& time) {
  const bool tree = time.algorithm == NcclAlgorithm::tree || time.algorithm == NcclAlgorithm::nvls_tree;
  return tree ? Algorithm::double_tree : Algorithm::ring;
}

namespace {

std::string schedule_key(const Collective& collective, const AllReduceChoice& choice, const Group& group) {
  const int segments =
      choice.algorithm == Algorithm::double_tree ? tree_pieces(choice, collective.buffer.size) : 0;
  return fmt::format("{} {} {} {} {} {} {} {} {} {}", static_cast<int>(collective.kind),
                     static_cast<int>(choice.algorithm), choice.channels, static_cast<int>(choice.local),
                     static_cast<int>(choice.network), segments, group.ranks, group.ranks_per_node,
                     choice.local == LocalPart::flat ? collective.root : 0,
                     static_cast<const void*>(collective.schedule.get()));
}

}  // namespace

CollectiveSchedules::CollectiveSchedules(const Simulation& simulation, const Topology& topology)
    : simulation_(simulation),
      placement_{simulation.platform, &topology, simulation.plan->endpoints, simulation.latency_factor},
      patterns_(simulation.bandwidths) {
  for (const Collective& collective : plan().collectives) chosen_.push_back(choose(collective));
}

Placement CollectiveSchedules::placement(const Communicator& communicator, int first_group,
                                         int groups) const {
  const std::ptrdiff_t size = communicator.size;
  const auto first = communicator.ranks.begin() + first_group * size;
  return placement_of(placement_, {first, first + groups * size});
}

/// The schedule and the duration of a choice, with all groups active at the same time.
CollectiveSchedules::Chosen CollectiveSchedules::candidate(const Collective& collective,
                                                           const AllReduceChoice& choice) {
  const Communicator& communicator = communicator_of(plan(), collective);
  const Group group{communicator.size, communicator.ranks_per_node};
  const AllReduceChoice actual_choice = resolved_choice(choice, group.ranks, collective.buffer.size);
  auto& schedule = schedules_[schedule_key(collective, actual_choice, group)];
  if (schedule == nullptr) schedule = schedule_of(collective, actual_choice, group);
  const auto [pattern, is_new] = placed_.try_emplace({schedule.get(), collective.communicator});
  if (is_new) {
    pattern->second = patterns_.add(replicated(schedule, communicator.groups()),
                                    placement(communicator, 0, communicator.groups()));
  }
  const double seconds = patterns_.uncontended(pattern->second, collective.buffer.size);
  return {choice, schedule, pattern->second, seconds, false};
}

CollectiveSchedules::Chosen CollectiveSchedules::choose(const Collective& collective) {
  const Communicator& communicator = communicator_of(plan(), collective);
  if (communicator.size == 1 || collective.buffer.size.value == 0) return {};
  const AllReduceChoice& asked = communicator.all_reduce;
  const bool automatic = has_automatic_algorithm(plan(), collective);
  const Group group{communicator.size, communicator.ranks_per_node};
  const auto [ranks, is_new] = nccl_ranks_.try_emplace(collective.communicator);
  if (is_new) ranks->second = nccl_ranks(*simulation_.platform, plan(), communicator);
  if (const auto known = nccl_time_of(simulation_, collective, ranks->second, asked)) {
    AllReduceChoice choice = asked;
    if (automatic) choice.algorithm = schedule_algorithm(*known);
    Chosen chosen = candidate(collective, choice);
    chosen.seconds = known->time.value;
    chosen.known = true;
    return chosen;
  }
  Chosen fastest;
  fastest.seconds = INFINITY;
  for (const AllReduceChoice& choice :
       automatic ? candidates(asked, group) : std::vector<AllReduceChoice>{asked}) {
    Chosen one = candidate(collective, choice);
    if (one.seconds < fastest.seconds) fastest = std::move(one);
  }
  return fastest;
}

CollectiveLoad CollectiveSchedules::load() const {
  CollectiveLoad load{simulation_, {}, true, true};
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    const Chosen& one = chosen_[i];
    if (one.schedule == nullptr) continue;
    const Collective& collective = plan().collectives[i];
    const Bytes size = collective.buffer.size;
    load.collectives.push_back({one.schedule.get(), &patterns_.pattern(one.pattern), size,
                                collective.communicator, CollectiveId(i), one.seconds,
                                patterns_.latency(one.pattern, size), one.known});
  }
  return load;
}

bool CollectiveSchedules::workers_are_symmetric() const {
  if (!symmetric_) symmetric_ = workers_symmetric(load(), single_messages(plan(), placement_));
  return *symmetric_;
}

std::string CollectiveSchedules::algorithm(CollectiveId collective) const {
  const Chosen& one = (*this)[collective];
  const bool all_reduce = plan().collectives[collective.index()].kind == Collective::Kind::all_reduce;
  if (one.schedule == nullptr || !all_reduce) return "";
  return stepcast::algorithm_names()[ordinal(one.choice.algorithm)];
}

std::string CollectiveSchedules::algorithm_names() const {
  std::set<std::string> names;
  for (std::size_t i = 0; i < chosen_.size(); ++i) names.insert(algorithm(CollectiveId(i)));
  names.erase("");
  return fmt::format("{}", fmt::join(names, ", "));
}

AllReduceChoices CollectiveSchedules::automatic_choices() const {
  AllReduceChoices choices;
  for (std::size_t i = 0; i < chosen_.size(); ++i) {
    if (has_automatic_algorithm(plan(), plan().collectives[i])) choices[CollectiveId(i)] = chosen_[i].choice;
  }
  return choices;
}

}  // namespace stepcast
