#include "strategies/nccl/channels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <stdexcept>

#include "strategies/nccl/rings.hpp"

namespace stepcast {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// Share of PCIe's bandwidth that data between devices reaches: 11.2 of 12 GB/s on four V100 of a PCIe switch
/// (validate/data/nccl_tests/v100-pcie-4.txt).
constexpr double kPcieShare = 0.93;

/// Share of PCIe's bandwidth that is left when data is staged in host memory: 8.9 of 12 GB/s on p3dn.24xlarge
/// (validate/data/nccl_tests/p3dn-2-nodes-efa.txt).
constexpr double kStagedShare = 0.75;

/// Share of NVLinks that rings reach on Pascal, where a channel has half as many threads
/// (src/transport/p2p.cu): 62.9 GB/s in an all-gather and 55.4 GB/s in a reduce-scatter of the 72 GB/s of
/// four links (the tables of dgx1-p100-8 that are `fit`, validate/data/nccl_tests).
constexpr double kPascalShare = 0.82;

/// Latency between nodes that NCCL's tables hold already [s].
constexpr double kTabledLatency = 2e-6;

constexpr int kMostChannels = 16;

/// Share of an NVSwitch port that rings use: 12 channels of 30 GB/s for 18 NVLinks of 20.6 GB/s on Hopper
/// (sm90SpeedArrayIntra, src/graph/search.cc); on Blackwell as all-to-all reaches it (668 of 722 GB/s,
/// validate/data/nccl_tests/b200-nvswitch-8-alltoall.txt).
double ring_share(int compute_capability) {
  if (compute_capability >= 100) return 0.92;
  return compute_capability >= 90 ? 0.97 : 1;
}

bool spans(const std::vector<int>& devices, int part) {
  return std::ranges::any_of(devices, [&](int device) { return device / part != devices.front() / part; });
}

void lay_over_pcie(const Platform& platform, const NcclRanks& group, NcclChannels& result) {
  const NodeShape& node = platform.node;
  double rate = node.device.bandwidth.value;
  const int per_switch = node.devices_per_pcie_switch;
  if (per_switch > 0 && spans(group.devices, per_switch))
    rate = std::min(rate, node.pcie_switch.bandwidth.value);
  const int per_socket = (platform.devices_per_node + node.sockets - 1) / node.sockets;
  if (spans(group.devices, per_socket))
    rate = std::min(rate, node.inter_socket.bandwidth.value / group.side_by_side);
  result.rings = {kPcieShare * rate};
  result.channels = 1;
}

void lay_inside(const Platform& platform, const NcclRanks& group, NcclChannels& result) {
  result.rings = {kUnlimited};
  if (group.devices.size() == 1) return;
  const NodeShape& node = platform.node;
  if (node.kind == NodeShape::Kind::nvswitch) {
    result.nvlink = true;
    result.port = node.peer.bandwidth;
    result.rings = ring_share(platform.software.compute_capability) * result.port;
    result.channels = std::clamp(static_cast<int>(std::lround(result.port.value / 20e9)), 1, kMostChannels);
    return;
  }
  const int rings = rings_over_links(node.peers, group.devices);
  if (rings == 0) return lay_over_pcie(platform, group, result);
  result.nvlink = true;
  result.channels = rings;
  result.port = rings * node.peer.bandwidth;
  result.rings = (platform.software.compute_capability < 70 ? kPascalShare : 1) * result.port;
}

/// Lays channels over all NICs beside the devices. Communicators that work side by side share each NIC.
void lay_between(const Platform& platform, const NcclRanks& group, NcclChannels& result) {
  result.network = result.nic = result.host_copy = {kUnlimited};
  if (group.nodes == 1) return;
  const NetworkShape& network = platform.network;
  const Software& software = platform.software;
  std::set<int> nics;
  for (const int device : group.devices) nics.insert(device * network.nics / platform.devices_per_node);
  const double count = network.striped ? network.nics : static_cast<double>(nics.size());
  const double users = std::max(1.0, group.side_by_side * count / network.nics);
  double nic = std::min(network.nic.bandwidth.value, platform.node.device.bandwidth.value);
  double all = count * nic;
  if (!software.gpudirect) {
    result.host_copy = platform.node.device.bandwidth;
    const double staged = kStagedShare * platform.node.device.bandwidth.value;
    nic = std::min(nic, staged);
    all = software.staging.value > 0 ? std::min(all, software.staging.value * count / network.nics)
                                     : count * nic;
  }
  result.network = {all / users};
  result.nic = {nic / users};
  result.channels = std::max(1, static_cast<int>(count));
  result.nic_nearby = software.gpudirect && network.nic_on_pcie_switch;
  const double latency = 2 * network.nic.latency.value + platform.message_costs.front().overhead.value;
  result.network_latency = {std::max(0.0, latency - kTabledLatency)};
}

}  // namespace

NcclChannels nccl_channels(const Platform& platform, const NcclRanks& group) {
  if (group.devices.empty() || group.nodes < 1) throw std::invalid_argument("a communicator needs devices");
  NcclChannels result;
  result.nodes = group.nodes;
  result.ranks = group.ranks();
  lay_inside(platform, group, result);
  lay_between(platform, group, result);
  return result;
}

}  // namespace stepcast
