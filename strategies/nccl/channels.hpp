#pragma once

#include <vector>

#include "platforms/platform.hpp"

namespace stepcast {

/// The number of rings through all `devices` that NVLinks carry at the same time, as NCCL's graph search lays
/// them: each cable carries one ring each way. Every undirected ring counts twice, once for each direction.
/// 0: no ring passes all devices over NVLinks alone.
///
/// Finds the most rings by a search with a limit, as NCCL's does; above some 16 devices it may find fewer.
/// @param peers    the cables between devices of a node
/// @param devices  numbers in the node, at least 2
int rings_over_links(const std::vector<PeerLink>& peers, const std::vector<int>& devices);

/// The devices of a communicator, which are the same in each of its nodes.
struct NcclRanks {
  int nodes = 1;
  std::vector<int> devices;  ///< numbers in the node, at least one
  /// Communicators of this form that work in the same node at the same time: they share NICs and sockets.
  int side_by_side = 1;

  int ranks() const { return nodes * devices.size(); }
  bool operator==(const NcclRanks&) const = default;
};

/// The channels that NCCL's graph search finds for a communicator, and their total bandwidth.
struct NcclChannels {
  int nodes = 1, ranks = 1;
  int channels = 1;          ///< before NCCL doubles them
  bool nvlink = false;       ///< inside a node; false: PCIe, or a single device
  BytesPerSecond rings;      ///< inside a node, over all channels; infinite for a single device
  BytesPerSecond port;       ///< of a device at the NVSwitch, or all its NVLinks; 0 without NVLink
  BytesPerSecond network;    ///< into a node and out of it, over all NICs; infinite for one node
  double network_share = 1;  ///< of `network` that rings and trees reach
  BytesPerSecond nic;        ///< one NIC
  BytesPerSecond host_copy;  ///< a device's link to the host, which staging uses; infinite with GPUDirect
  bool nic_nearby = false;   ///< NICs and devices share PCIe switches and GPUDirect is on: LL128 may be used
  Seconds network_latency;   ///< of a message between nodes beyond that of InfiniBand, which the tables hold
  double latency_factor =
      1;  ///< multiplies all latencies and times to start kernels; 0.5 shows what half of them would save

  int devices_per_node() const { return ranks / nodes; }
  /// Of rings and trees between nodes [B/s].
  double ring_network() const { return network_share * network.value; }
};

/// Lays the channels. The fabric between nodes counts as not blocking: a taper above the NICs is left out.
/// Sources of the rules: NCCL, src/graph/search.cc and topo.h; where an observed rate replaces one, the code
/// says so.
/// @throws std::invalid_argument for an empty group
NcclChannels nccl_channels(const Platform& platform, const NcclRanks& group);

}  // namespace stepcast
