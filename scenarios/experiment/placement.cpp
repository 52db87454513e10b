#include "scenarios/experiment/placement.hpp"

#include <algorithm>
#include <map>

#include "core/random.hpp"

namespace stepcast {

const Words<PlacementRule>& placement_words() {
  static const Words<PlacementRule> words{{"packed", PlacementRule::packed},
                                          {"spread", PlacementRule::spread},
                                          {"random", PlacementRule::random}};
  return words;
}

namespace {

/// Workers of a node, if the fewest nodes are used. Nodes get equal numbers, as torchrun and Slurm's
/// --ntasks-per-node start them, if these are multiples of 8, into which groups of tensor parallelism fit: 64
/// in each of two racks of 72. Else a node is filled before the next.
int in_each_node(int devices, int workers) {
  constexpr int kMultiple = 8;
  const int nodes = (workers + devices - 1) / devices, each = workers / nodes;
  return workers % nodes == 0 && each % kMultiple == 0 ? each : devices;
}

}  // namespace

std::vector<int> place_workers(const Platform& platform, int workers, PlacementRule rule,
                               std::uint64_t seed) {
  std::vector<int> devices(workers);
  if (rule == PlacementRule::random) {
    const auto order = permutation({seed, Purpose::placement, 0, 0, 0}, platform.devices());
    std::copy_n(order.begin(), workers, devices.begin());
    // Launchers give the processes of a node consecutive ranks, wherever the node is.
    std::map<int, std::vector<int>> by_node;
    std::vector<int> nodes;
    for (const int device : devices) {
      auto& here = by_node[platform.node_of(device)];
      if (here.empty()) nodes.push_back(platform.node_of(device));
      here.push_back(device);
    }
    devices.clear();
    for (const int node : nodes) devices.insert(devices.end(), by_node[node].begin(), by_node[node].end());
    return devices;
  }
  if (rule == PlacementRule::packed) {
    const int each = in_each_node(platform.devices_per_node, workers);
    for (int i = 0; i < workers; ++i) devices[i] = i / each * platform.devices_per_node + i % each;
    return devices;
  }
  for (int i = 0; i < workers; ++i) {
    const int node = i % platform.nodes, slot = i / platform.nodes;
    devices[i] = node * platform.devices_per_node + slot;
  }
  std::sort(devices.begin(), devices.end());
  return devices;
}

}  // namespace stepcast
