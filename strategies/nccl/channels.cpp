#include "strategies/nccl/channels.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <stdexcept>

namespace stepcast {
namespace {

constexpr int kSearchLimit = 300'000;  ///< steps of the search: some milliseconds

/// Packs undirected Hamiltonian cycles into a multigraph, one cable for each use.
class RingSearch {
 public:
  RingSearch(const std::vector<PeerLink>& peers, const std::vector<int>& devices)
      : count_(devices.size()), cables_(count_ * count_, 0) {
    for (const PeerLink& peer : peers) {
      const auto a = std::find(devices.begin(), devices.end(), peer.a) - devices.begin();
      const auto b = std::find(devices.begin(), devices.end(), peer.b) - devices.begin();
      if (std::max(a, b) == static_cast<std::ptrdiff_t>(count_)) continue;
      cable(a, b) += peer.count;
      cable(b, a) += peer.count;
    }
  }

  /// The most rings, each direction counted.
  int most() {
    if (count_ == 2) return cable(0, 1);
    bound_ = fewest_cables() / 2;
    start_ring();
    return 2 * best_;
  }

 private:
  int& cable(std::size_t from, std::size_t to) { return cables_[from * count_ + to]; }

  int fewest_cables() {
    int fewest = INT32_MAX;
    for (std::size_t from = 0; from < count_; ++from) {
      int sum = 0;
      for (std::size_t to = 0; to < count_; ++to) sum += cable(from, to);
      fewest = std::min(fewest, sum);
    }
    return fewest;
  }

  bool over() const { return best_ == bound_ || steps_ > kSearchLimit; }

  void start_ring() {
    best_ = std::max(best_, complete_);
    if (over()) return;
    const std::vector<char> before = std::exchange(used_, std::vector<char>(count_, 0));
    used_[0] = 1;
    extend(0, 1);
    used_ = before;
  }

  /// Extends a path of `length` devices that ends at `last`, and closes it to a ring when it is complete.
  void extend(std::size_t last, std::size_t length) {
    ++steps_;
    if (length == count_) {
      if (cable(last, 0) == 0) return;
      take(last, 0, -1);
      ++complete_;
      start_ring();
      --complete_;
      take(last, 0, 1);
      return;
    }
    for (std::size_t next = 1; next < count_ && !over(); ++next) {
      if (used_[next] != 0 || cable(last, next) == 0) continue;
      used_[next] = 1;
      take(last, next, -1);
      extend(next, length + 1);
      take(last, next, 1);
      used_[next] = 0;
    }
  }

  void take(std::size_t from, std::size_t to, int change) {
    cable(from, to) += change;
    cable(to, from) += change;
  }

  std::size_t count_;
  std::vector<int> cables_;
  std::vector<char> used_;
  int bound_ = 0, best_ = 0, complete_ = 0, steps_ = 0;
};

}  // namespace

int rings_over_links(const std::vector<PeerLink>& peers, const std::vector<int>& devices) {
  return devices.size() < 2 ? 0 : RingSearch(peers, devices).most();
}

namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

/// Share of PCIe's bandwidth that data between devices reaches: 11.2 of 12 GB/s on four V100 of a PCIe switch
/// (v100-pcie-4, validate/data/nccl_tests.yaml).
constexpr double kPcieShare = 0.93;

/// Share of a device's link to the host that it reaches in each direction when it writes to host memory and
/// reads from it at once (src/transport/shm.cc): the geometric mean of three machines with a link for each
/// device, 3.85 of 12 GB/s (rtx4090-two-sockets-2, validate/data/nccl_tests.yaml), 3.9 of 12 (NVIDIA/nccl
/// issue 384: a broadcast, one way, reaches 10.3; "some CPUs do not handle bidirectional traffic well") and
/// 14.9 of 24 (rtx4090-8-one-process).
constexpr double kBothWaysShare = 0.40;

/// The same of the link that the devices of a PCIe switch share: two RTX 2080 Ti reach 4.0 GB/s each of 12
/// (rtx2080ti-2). Other machines with two devices a switch reach 2.24 and 2.58 GB/s (rtx4090-one-switch-2,
/// rtx4090-two-switches-4: one cluster), and V100 4 GB/s and more (training of BERT with NCCL_P2P_DISABLE=1,
/// lambdal/deeplearning-benchmark).
constexpr double kSwitchBothWaysShare = 0.67;

/// Share of PCIe's bandwidth that is left when data is staged in host memory: 8.9 of 12 GB/s on p3dn.24xlarge
/// (p3dn-2-nodes-efa, validate/data/nccl_tests.yaml).
constexpr double kStagedShare = 0.75;

/// Share of a NIC that is left where a ring enters a node beside the NIC and leaves it from a device beside
/// another one: before NCCL 2.12, whose PXN sends over a device that is beside the NIC, that data passes
/// through host memory. Fitted: sums of gradients of 64 A100 with 2 and 4 ways of tensor parallelism
/// (VIA-Research/vTrain, data/ground_truth_multi.csv).
constexpr double kFarShare = 0.18;

/// NCCL's first version with PXN. Source: NVIDIA, Doubling all2all performance with NVIDIA collective
/// communication library 2.12, 2022: the way through the CPU "would not be able to deliver full bandwidth".
constexpr int kVersionWithPxn = 212;

/// TCP's rate of one host thread [B/s], for a NIC of 4 GB/s: NCCL 2.3.7 reaches 2.06 GB/s with one ring,
/// which has a proxy thread of its own, and 3.75 GB/s with eight; 2.4.2, whose proxy thread serves all
/// rings, 1.85 GB/s at most. Source: NVIDIA/nccl issue 209 (two nodes, one V100 of each, all_reduce_perf of 1
/// GiB). It names no rates of later versions.
constexpr double kSocketThread = 2.06e9, kSocketProxy = 1.85e9;

/// Channels of a NIC from 2.4.8 on, each with a connection of its own (NVIDIA/nccl issue 438: two at
/// present).
constexpr int kSocketChannels = 2;

/// Share of NVLinks that rings reach on Pascal, where a channel has half as many threads
/// (src/transport/p2p.cu): 62.9 GB/s in an all-gather and 55.4 GB/s in a reduce-scatter of the 72 GB/s of
/// four links (the tables of dgx1-p100-8 that are `fit`, validate/data/nccl_tests.yaml).
constexpr double kPascalShare = 0.82;

/// Latency between nodes that NCCL's tables hold already [s].
constexpr double kTabledLatency = 2e-6;

constexpr int kMostChannels = 16;

/// Share of an NVSwitch port that rings use: 12 channels of 30 GB/s for 18 NVLinks of 20.6 GB/s on Hopper
/// (sm90SpeedArrayIntra, src/graph/search.cc); on Blackwell as all-to-all reaches it (668 of 722 GB/s,
/// b200-nvswitch-8-alltoall, validate/data/nccl_tests.yaml).
double ring_share(int compute_capability) {
  if (compute_capability >= 100) return 0.92;
  return compute_capability >= 90 ? 0.97 : 1;
}

bool spans(const std::vector<int>& devices, int part) {
  return std::ranges::any_of(devices, [&](int device) { return device / part != devices.front() / part; });
}

/// The most devices of the group that are on one PCIe switch.
double most_on_switch(const std::vector<int>& devices, int per_switch) {
  std::map<int, int> on;
  int most = 1;
  for (const int device : devices) most = std::max(most, ++on[device / per_switch]);
  return most;
}

/// What a ring's hop moves over PCIe between two devices that reach each other's memory, or through host
/// memory: then also devices of one switch use its link to the processor, and share it.
double pcie_rate(const NodeShape& node, const NcclRanks& group, bool staged) {
  const int per_switch = node.devices_per_pcie_switch;
  const double device = node.device.bandwidth.value;
  double to_host = kUnlimited;  // a device's share of the link of its switch
  if (per_switch > 0 && staged)
    to_host = node.pcie_switch.bandwidth.value / most_on_switch(group.devices, per_switch);
  else if (per_switch > 0 && spans(group.devices, per_switch))
    to_host = node.pcie_switch.bandwidth.value;
  if (staged && !node.staging_given) return std::min(kBothWaysShare * device, kSwitchBothWaysShare * to_host);
  return kPcieShare * std::min(device, to_host);
}

void lay_over_pcie(const Platform& platform, const NcclRanks& group, NcclChannels& result) {
  const NodeShape& node = platform.node;
  const bool staged = !node.peer_access || !platform.software.peer_to_peer;
  double rate = pcie_rate(node, group, staged);
  const int per_socket = (platform.devices_per_node + node.sockets - 1) / node.sockets;
  if (spans(group.devices, per_socket))
    rate = std::min(rate, kPcieShare * node.inter_socket.bandwidth.value /
                              (node.half_duplex_sockets ? 2 : 1) / group.side_by_side);
  if (staged && node.staging_given)
    rate =
        std::min(rate, kPcieShare * node.staging.value / (1.0 * group.devices.size() * group.side_by_side));
  result.rings = {rate};
  result.channels = 1;
}

void lay_inside(const Platform& platform, const NcclRanks& group, NcclChannels& result) {
  result.rings = {kUnlimited};
  if (group.devices.size() == 1) return;
  const NodeShape& node = platform.node;
  if (!platform.software.peer_to_peer) return lay_over_pcie(platform, group, result);
  if (node.kind == NodeShape::Kind::nvswitch) {
    result.nvlink = true;
    result.port = node.peer.bandwidth;
    result.rings = ring_share(platform.software.compute_capability) * result.port;
    result.channels = std::clamp<int>(std::lround(result.port.value / 20e9), 1, kMostChannels);
    return;
  }
  const int rings = rings_over_links(node.peers, group.devices);
  if (rings == 0) return lay_over_pcie(platform, group, result);
  result.nvlink = true;
  result.channels = rings;
  result.port = rings * node.peer.bandwidth;
  result.rings = (platform.software.compute_capability < 70 ? kPascalShare : 1) * result.port;
}

/// What host threads move between one NIC's sockets and host memory [B/s].
double socket_rate(const Software& software) {
  if (software.transport != Software::Transport::sockets) return kUnlimited;
  if (software.socket_threads > 0) return kSocketChannels * software.socket_threads * kSocketThread;
  return software.nccl < 204 ? kSocketThread : kSocketProxy;
}

/// True if a ring through several devices of each node cannot begin and end beside the same NIC, because no
/// two of them share a PCIe switch.
bool ends_far_from_nic(const Platform& platform, const NcclRanks& group) {
  const int per_switch = platform.node.devices_per_pcie_switch;
  if (!platform.network.nic_on_pcie_switch || per_switch < 2 || group.devices.size() < 2) return false;
  return most_on_switch(group.devices, per_switch) < 2;
}

/// Lays channels over all NICs that are next to the devices. Communicators that work side by side share each
/// NIC.
void lay_between(const Platform& platform, const NcclRanks& group, NcclChannels& result) {
  result.network = result.nic = result.host_copy = {kUnlimited};
  if (group.nodes == 1) return;
  const NetworkShape& network = platform.network;
  const Software& software = platform.software;
  std::set<int> nics;
  for (const int device : group.devices) nics.insert(device * network.nics / platform.devices_per_node);
  const double count = network.striped ? network.nics : static_cast<double>(nics.size());
  const double users = std::max(1.0, group.side_by_side * count / network.nics);
  double nic =
      std::min({network.nic.bandwidth.value, platform.node.device.bandwidth.value, socket_rate(software)});
  double all = count * nic;
  if (!software.gpudirect) {
    result.host_copy = platform.node.device.bandwidth;
    const double staged = kStagedShare * platform.node.device.bandwidth.value;
    nic = std::min(nic, staged);
    all = software.staging.value > 0 ? std::min(all, software.staging.value * count / network.nics)
                                     : count * nic;
  }
  if (software.gpudirect && software.nccl < kVersionWithPxn && ends_far_from_nic(platform, group))
    result.network_share = kFarShare;
  result.network = {all / users};
  result.nic = {nic / users};
  result.channels = std::max<int>(1, count);
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
