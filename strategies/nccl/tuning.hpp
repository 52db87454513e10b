#pragma once

#include <array>

namespace stepcast {

/// Latencies of NCCL's tuning model by protocol LL, LL128, Simple [us].
using NcclLatency = std::array<double, 3>;

/// The constants of one range of NCCL's versions: `baseLat` and `hwLat` of src/graph/tuning.cc [us].
struct NcclLatencies {
  int first_version;  ///< 100 x major + minor; valid up to the next row
  NcclLatency tree_base, ring_base;
  NcclLatency tree_nvlink, ring_nvlink;
  NcclLatency tree_pcie, ring_pcie;
  NcclLatency tree_network, ring_network;
};

/// The row of a version: 2.3 to 2.5, 2.6 to 2.17, 2.18 to 2.21, 2.22 on.
const NcclLatencies& nccl_latencies(int version);

/// Greatest bandwidth of channels and protocols by generation of the device [GB/s]; each by one, two and more
/// nodes. Source: `llMaxBws`, `perChMaxRingLL128Bws`, `perChMaxTreeLL128Bws`, `perChMaxTreeBws` and
/// `perChMaxNVLSTreeBws` of NCCL 2.28, src/graph/tuning.cc. They are NVIDIA's measurements, so that they
/// count for older versions too.
struct NcclLimits {
  std::array<double, 3> ll;          ///< all channels
  std::array<double, 3> ring_ll128;  ///< a channel
  std::array<double, 3> tree_ll128;  ///< a channel
  std::array<double, 3> tree;        ///< a channel
  std::array<double, 3> nvls_tree;   ///< a channel
};

/// @param compute_capability  10 x CUDA's
const NcclLimits& nccl_limits(int compute_capability);

/// Share of a tree's bandwidth that buffers of middle sizes reach: `treeCorrectionFactor` of NCCL 2.28,
/// src/graph/tuning.cc. @param protocol  0 LL, 1 LL128, 2 Simple
double nccl_tree_correction(int protocol, double bytes);

}  // namespace stepcast
