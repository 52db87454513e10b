#pragma once

#include <array>
#include <string>
#include <vector>

#include "core/typed_numbers.hpp"
#include "platforms/platform.hpp"
#include "platforms/software.hpp"
#include "strategies/nccl/channels.hpp"

namespace stepcast {

/// The operations of nccl-tests.
enum class NcclOperation {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  send_receive
};

enum class NcclAlgorithm { ring, tree, nvls, nvls_tree, direct };
enum class NcclProtocol { ll, ll128, simple };

/// Time of a collective with one algorithm and protocol.
struct NcclTime {
  Seconds time;
  NcclAlgorithm algorithm = NcclAlgorithm::ring;
  NcclProtocol protocol = NcclProtocol::simple;
};

/// Share of the NICs' rate that sends and receives between pairs use, fitted (see collective_time.cpp).
inline constexpr double kDirectNetworkShare = 0.44;

/// Latencies of NCCL's tuning model by protocol LL, LL128, Simple [us].
using NcclLatency = std::array<double, 3>;

inline double latency_of(const NcclLatency& latencies, NcclProtocol protocol) {
  return latencies[ordinal(protocol)];
}

/// The constants of one range of NCCL's versions: `baseLat` and `hwLat` of src/graph/tuning.cc [us], and the
/// shares of a channel's bandwidth in ncclTopoTuneModel.
struct NcclTuning {
  int first_version;  ///< 100 x major + minor; valid up to the next row
  NcclLatency tree_base, ring_base;
  NcclLatency tree_nvlink, ring_nvlink;
  NcclLatency tree_pcie, ring_pcie;
  NcclLatency tree_network, ring_network;
  double ring_ll128;  ///< share that LL128 reaches
  double tree;        ///< share that Simple reaches
  double tree_ll;     ///< of tree
  double tree_ll128;  ///< of tree, between nodes; inside a node it is 7/9
  /// "Plateau effect of ring": multiplies the latency of Simple between nodes, up to Volta, on Ampere, later.
  std::array<double, 3> plateau;
};

/// The row of a version: 2.3 to 2.6, 2.7, 2.8 and 2.9, 2.10 to 2.17, 2.18 to 2.21, 2.22 on.
const NcclTuning& nccl_tuning(int version);

/// Greatest bandwidths by version and by generation of the device [GB/s]. Arrays of three are by one, two and
/// more nodes. What later versions have alone is unlimited.
struct NcclLimits {
  std::array<double, 3> ll;               ///< all channels
  std::array<double, 3> tree_ll128;       ///< a channel
  std::array<double, 3> tree;             ///< a channel
  std::array<double, 3> nvls_tree;        ///< a channel
  std::array<double, 5> ring_ll128;       ///< a channel, in the order of NcclOperation up to reduce
  std::array<double, 3> all_trees;        ///< all channels, LL and Simple
  std::array<double, 3> all_trees_ll128;  ///< all channels
  double all;                             ///< all channels, any algorithm
};

/// @param compute_capability  10 x CUDA's
const NcclLimits& nccl_limits(int version, int compute_capability);

/// Share of a tree's bandwidth that buffers of middle sizes reach: `treeCorrectionFactor` of the version.
double nccl_tree_correction(int version, NcclProtocol protocol, double bytes);

/// NCCL 2.4 brought one proxy thread a communicator, trees, and buffers that outlive an operation.
constexpr int kFirstWithTrees = 204;

/// Time of a collective by the rings of NCCL 2.0 to 2.3, without the start of the kernel. `latency + size /
/// bandwidth` with the latencies of 2.5's tuning model, and what its kernels and transports add:
///
/// - until 2.2, LL serves up to 16 KiB (NCCL_LL_THRESHOLD), and a single ring up to 128 KiB, 256 KiB from
///   Volta on (NCCL_SINGLE_RING_THRESHOLD); an all-gather and a reduce-scatter count a rank's part. 2.3 sets
///   its threshold by the ranks; the quicker protocol stands for it.
/// - Rings over NVLinks are laid twice (src/transport/p2p.cu: "Duplicate the rings"). A broadcast or reduce
///   passes slices of up to 512 KiB of each of these rings, and no rank ends before the next one has sent
///   them on (src/collectives/device/broadcast.h), so that the pipeline fills anew in each operation:
///   (ranks - 2) slices.
/// - Between nodes each ring has proxy threads, which an operation wakes up (src/transport.cu), and they copy
///   LL's lines. A broadcast or reduce ends at a rank when its proxy has sent, so that consecutive operations
///   overlap: one hop counts.
/// - Without GPUDirect a rank's part crosses the device's link to the host once a hop. A second loop over the
///   buffer (parts of 2 MiB and more) hides it.
///
/// Sources: NVIDIA/nccl at 2.3.5 to 2.3.7; NCCL's documentation of environment variables, 2.3.7
/// (docs.nvidia.com/deeplearning/nccl/user-guide/docs/2.3.7/_sources/env.txt): NCCL_SINGLE_RING_THRESHOLD,
/// "since 2.1.0, deprecated in 2.3", 262144 from compute capability 7 on and 131072 below, and
/// NCCL_LL_THRESHOLD, 16384 "up to 2.2". Whether 2.0 had the same is not documented.
/// @param operation  no sends and receives, which these versions do not have
NcclTime early_ring_time(const Software& software, const NcclChannels& channels, NcclOperation operation,
                         double size);

const std::vector<std::string>&
nccl_operation_names();                          ///< in the order of NcclOperation, as nccl-tests names them
std::string to_string(NcclAlgorithm algorithm);  ///< as NCCL names it, such as "RING"; "P2P" for sends
std::string to_string(NcclProtocol protocol);    ///< "LL", "LL128", "SIMPLE"

/// Where the ranks' parts of a buffer begin: libraries that train align them; nccl-tests before 2020 divided
/// the size by the ranks.
enum class RankParts { aligned, by_size };

/// The algorithm that NCCL chooses for a buffer of `size` bytes, and its time. NCCL chooses the least
/// estimate of all algorithms and protocols that the version has on these channels. The time is this
/// estimate, what it leaves out of the chosen algorithm, and the start of the kernel. All ranks enter at the
/// same time.
///
/// The estimate is NCCL's own tuning model, latency + size / bandwidth (src/graph/tuning.cc:
/// ncclTopoTuneModel and ncclTopoGetAlgoTime), with the channels of nccl_channels. Comments in the code mark
/// what is added to that model. Versions before 2.4 have early_ring_time in its place.
/// @param size  as nccl-tests counts it: the whole buffer of an all-gather or a reduce-scatter, and all
///              that a rank sends in an all-to-all
/// @param parts  by_size: parts of a reduce-scatter that begin at no multiple of 16 bytes take longer
NcclTime nccl_time(const Software& software, const NcclChannels& channels, NcclOperation operation,
                   Bytes size, RankParts parts = RankParts::aligned);

/// Bus bandwidth / algorithm bandwidth of an operation (nccl-tests, doc/PERFORMANCE.md).
double bus_factor(NcclOperation operation, int ranks);

/// The ranks whose bus_factor is bus / algorithm, two bandwidths that are rounded to two decimals [GB/s]; 0
/// if several or none are, or if the factor does not depend on the ranks.
int ranks_of_bandwidths(NcclOperation operation, double algorithm, double bus);

}  // namespace stepcast
