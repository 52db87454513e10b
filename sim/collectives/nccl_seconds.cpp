#include "sim/collectives/nccl_seconds.hpp"

#include <algorithm>
#include <map>
#include <set>

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

/// The endpoints of group `index`; empty if one of them is no device.
std::vector<int> endpoints_of(const Platform& platform, const Plan& plan, const Communicator& communicator,
                              int index) {
  std::vector<int> endpoints;
  for (int i = 0; i < communicator.size; ++i) {
    const RankId rank = communicator.ranks[static_cast<std::size_t>(index * communicator.size + i)];
    const int endpoint = plan.endpoints[rank];
    if (endpoint >= platform.devices()) return {};
    endpoints.push_back(endpoint);
  }
  return endpoints;
}

/// Groups with a rank in this node.
int groups_in(const Platform& platform, const Plan& plan, const Communicator& communicator, int node) {
  int count = 0;
  for (int group = 0; group < communicator.groups(); ++group) {
    const auto begin = communicator.ranks.begin() + static_cast<std::ptrdiff_t>(group) * communicator.size;
    count += std::any_of(begin, begin + communicator.size,
                         [&](RankId rank) { return platform.node_of(plan.endpoints[rank]) == node; });
  }
  return count;
}

/// The first group, which stands for all groups of the communicator.
std::optional<NcclRanks> group_of(const Platform& platform, const Plan& plan,
                                  const Communicator& communicator) {
  std::map<int, std::vector<int>> devices;  // by node
  for (const int endpoint : endpoints_of(platform, plan, communicator, 0))
    devices[platform.node_of(endpoint)].push_back(endpoint % platform.devices_per_node);
  if (devices.empty()) return std::nullopt;
  const auto& [node, first] = *devices.begin();
  for (const auto& one : devices) {
    const std::set<int> distinct(one.second.begin(), one.second.end());
    if (one.second.size() != first.size() || distinct.size() != first.size()) return std::nullopt;
  }
  return NcclRanks{static_cast<int>(devices.size()), first, groups_in(platform, plan, communicator, node)};
}

}  // namespace

std::optional<NcclTime> nccl_time_of(const Simulation& simulation, const Collective& collective,
                                     const AllReduceChoice& asked) {
  const Platform& platform = *simulation.platform;
  const Plan& plan = *simulation.plan;
  const auto operation = operation_of(collective.kind);
  if (platform.software.nccl == 0 || !operation) return std::nullopt;
  Software software = platform.software;
  if (operation == NcclOperation::all_reduce) {
    if (asked.algorithm != Algorithm::automatic && asked.algorithm != Algorithm::ring) return std::nullopt;
    if (asked.algorithm == Algorithm::ring) software.trees = software.nvls = false;
  }
  const Communicator& communicator = communicator_of(plan, collective);
  const auto group = group_of(platform, plan, communicator);
  if (!group) return std::nullopt;
  Bytes size = collective.buffer.size;
  if (operation == NcclOperation::all_to_all) size.value /= communicator.size;  // nccl-tests: one rank's data
  NcclChannels channels = nccl_channels(platform, *group);
  for (BytesPerSecond* rate :
       {&channels.rings, &channels.port, &channels.network, &channels.nic, &channels.host_copy})
    *rate = simulation.bandwidths.common_factor() * *rate;
  channels.latency_factor = simulation.latency_factor;
  return nccl_time(software, channels, *operation, size);
}

Algorithm schedule_algorithm(const NcclTime& time) {
  const bool tree = time.algorithm == NcclAlgorithm::tree || time.algorithm == NcclAlgorithm::nvls_tree;
  return tree ? Algorithm::double_tree : Algorithm::ring;
}

}  // namespace stepcast
