#include "strategies/nccl/collective_time.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace stepcast {
namespace {

constexpr double kMicro = 1e-6, kGiga = 1e9;

/// Start of a kernel and end of the operation, as nccl-tests counts them for each of its iterations; the
/// tuning model leaves them out, because they are the same for all algorithms. Fitted on the tables of the
/// fit set.
constexpr double kLaunch = 6 * kMicro;
/// Each further kernel that one process launches, while the operation before is still running, so that it
/// counts only where it takes longer than the operation. Fitted on the smallest sizes of the fit set's tables
/// with one process: 32 us on eight devices.
constexpr double kFurtherLaunch = 3.7 * kMicro;
/// The same in older versions, which launch the kernels of a process together (src/init.cc: launchMode is
/// GROUP; NCCL_LAUNCH_MODE is deprecated from 2.9 on). 48 us on eight devices, 59 to 61 us on twelve.
constexpr double kFurtherCooperativeLaunch = 5 * kMicro;

/// NVLink SHARP inside a node: share of a port that the algorithm bandwidth of an all-reduce reaches. Hopper:
/// 480 GB/s of bus bandwidth on 8 devices (NVIDIA, GTC 2024, S62129, as quoted in NVIDIA/nccl issue 1374);
/// Blackwell: 835 GB/s (Oracle's guide of BM.GPU.B200.8: nccl-tests, NCCL 2.28.9, 8 GiB).
double nvls_share(int compute_capability) {
  return compute_capability >= 100 ? 0.66 : 0.74;
}

struct Estimates {
  const Software& software;
  const NcclChannels& channels;
  NcclOperation operation;
  double size;
  NcclTime best{{INFINITY}, NcclAlgorithm::ring, NcclProtocol::simple};
  double least = INFINITY;  ///< the estimate that chose `best` [s]

  int ranks() const { return channels.ranks; }
  int nodes() const { return channels.nodes; }
  std::size_t by_nodes() const { return std::min(nodes(), 3) - 1; }
  bool all_reduce() const { return operation == NcclOperation::all_reduce; }
  const NcclTuning& tuning() const { return nccl_tuning(software.nccl); }
  const NcclLimits& limits() const { return nccl_limits(software.nccl, software.compute_capability); }
  /// A broadcast or reduction, whose data goes around a ring once in one direction.
  bool one_way() const { return operation == NcclOperation::broadcast || operation == NcclOperation::reduce; }
  /// Whether NCCL's own estimate of a ring has the plateau of its latency.
  bool counts_plateau() const { return nodes() > 1 && all_reduce(); }
  double log_nodes() const { return std::floor(std::log2(nodes())); }

  /// @param estimate  by which NCCL chooses [s]
  /// @param unseen    time that NCCL's estimate leaves out, so that it does not change the choice [s]
  void consider(double estimate, NcclAlgorithm algorithm, NcclProtocol protocol, double unseen = 0) {
    if (estimate >= least) return;
    least = estimate;
    best = {{estimate + unseen}, algorithm, protocol};
  }
};

/// Bandwidth of all channels for LL. Between nodes it depends on the processor, which copies the flags.
double ll_limit(const Estimates& e) {
  const int key =
      e.nodes() == 1 ? e.software.compute_capability : (e.software.cpu == Software::Cpu::amd ? 80 : 70);
  return nccl_limits(e.software.nccl, key).ll[e.by_nodes()] * kGiga;
}

/// LL128 needs NVLink and devices from Volta on; between nodes also NICs next to the devices.
bool has_ll128(const Estimates& e) {
  return e.software.nccl >= 205 && e.software.compute_capability >= 70 && e.channels.nvlink &&
         (e.nodes() == 1 || e.channels.nic_nearby);
}

/// Rounds of a ring, and how many of them cross the network.
struct Rounds {
  double all, network;
};

Rounds ring_rounds(const Estimates& e) {
  const double last = e.ranks() - 1, crossings = e.nodes() - 1;
  return e.all_reduce() ? Rounds{2 * last, 2 * crossings} : Rounds{last, crossings};
}

double ring_bandwidth(const Estimates& e, NcclProtocol protocol) {
  const NcclLimits& limits = e.limits();
  const double all = std::min({e.channels.rings.value, e.channels.ring_network(), limits.all * kGiga});
  if (protocol == NcclProtocol::ll) {
    const bool reduces = e.all_reduce() || e.operation == NcclOperation::reduce;
    const bool quarter = reduces || e.nodes() > 1 || e.software.nccl < 207;
    const double share = e.software.nccl >= 222 ? 0.5 : quarter ? 0.25 : 1 / 3.0;
    return std::min(ll_limit(e), share * all);
  }
  if (protocol == NcclProtocol::simple) return all;
  const double channel = limits.ring_ll128.at(ordinal(e.operation)) * kGiga;
  return std::min(e.tuning().ring_ll128 * all, e.channels.channels * channel);
}

/// Latency of a hop inside a node. Between nodes, each step of a ring costs the proxy some time
/// (`getNetOverhead`, in 2.20; taken from 2.18 on), and LL's flags take longer (2.7 to 2.21).
double local_hop(const Estimates& e, const NcclLatency& table, NcclProtocol protocol, bool ring) {
  double hop = latency_of(table, protocol) * kMicro;
  if (e.nodes() == 1) return hop;
  if (protocol == NcclProtocol::ll && e.software.nccl >= 207 && e.software.nccl < 222) hop *= 1.8;
  if (!ring || e.software.nccl < 218) return hop;
  const double overhead =
      (e.software.cpu == Software::Cpu::amd ? 2 : 1) * (protocol == NcclProtocol::simple ? 3 : 1);
  return std::max(hop, overhead * kMicro);
}

/// A chunk of Simple that crosses the network is first written to the sender's buffer and at the end read
/// from the receiver's, each at a channel's rate inside the node; NCCL's model leaves that out. A chunk is a
/// rank's part of a channel, at most 1 MiB (two of the eight steps of NCCL_BUFFSIZE, 4 MiB).
double network_forward(const Estimates& e, double part) {
  constexpr double kChunk = 1 << 20;
  return 2 * std::min(part, kChunk) * e.channels.channels / e.channels.rings.value;
}

/// "Plateau effect of ring" (ncclTopoGetAlgoTime, from 2.7 on): what multiplies the latency of Simple as soon
/// as a channel carries 64 bytes for each rank. NCCL counts it for all-reduces between nodes alone, where it
/// changes the choice; versions of 2026 also count it for all-gathers and reduce-scatters over Blackwell's
/// NVLinks (src/tuning/ring.cc). All these rings take the same steps, so here it counts for all of them over
/// NVLinks, but changes NCCL's choice only where NCCL counts it.
double plateau_factor(const Estimates& e, NcclProtocol protocol, double part) {
  if (protocol != NcclProtocol::simple || part < 64 || e.one_way() ||
      !(e.counts_plateau() || e.channels.nvlink))
    return 1;
  const int capability = e.software.compute_capability;
  return e.tuning().plateau.at(capability < 80 ? 0 : capability < 90 ? 1 : 2);
}

void consider_ring(Estimates& e, NcclProtocol protocol) {
  const NcclTuning& table = e.tuning();
  const Rounds rounds = ring_rounds(e);
  const bool as_network = e.nodes() > 1 && e.software.nccl < 207;  // all hops of a ring counted alike
  const NcclLatency& local = as_network          ? table.ring_network
                             : e.channels.nvlink ? table.ring_nvlink
                                                 : table.ring_pcie;
  const double network = latency_of(table.ring_network, protocol) * kMicro + e.channels.network_latency.value;
  double latency = latency_of(table.ring_base, protocol) * kMicro +
                   (rounds.all - rounds.network) * local_hop(e, local, protocol, true) +
                   rounds.network * network;
  const double part = e.size / e.channels.channels / e.ranks();
  const double plateau = (plateau_factor(e, protocol, part) - 1) * latency;
  if (e.counts_plateau()) latency += plateau;
  const double rate = ring_bandwidth(e, protocol) * (e.one_way() ? 1 : e.ranks() / rounds.all);
  const double forward = protocol == NcclProtocol::simple ? rounds.network * network_forward(e, part) : 0;
  e.consider(e.channels.latency_factor * latency + forward + e.size / rate, NcclAlgorithm::ring, protocol,
             e.counts_plateau() ? 0 : e.channels.latency_factor * plateau);
}

/// Additional time [s] of a reduce-scatter by rings with the protocol Simple, for those ranks' parts that do
/// not begin at a multiple of 16 bytes: the kernel moves these by single elements (NVIDIA/nccl,
/// src/collectives/device/common_kernel.h, ReduceOrCopyMulti: "Check that all is 16B aligned. If not don't
/// use 16B load/stores."). Newer nccl-tests align the parts: `(count/nranks) & -(16/eltSize)`
/// (src/reduce_scatter.cu). kShare is the share of the ring's rate that such parts reach. It was fitted on
/// dgx2-12-reduce-scatter (validate/data/nccl_tests.yaml, `fit`), of whose 12 parts 6 or 9 are unaligned,
/// after its miss had been seen.
double unaligned_seconds(const Estimates& e) {
  constexpr double kShare = 0.32, kAlignment = 16;
  if (e.operation != NcclOperation::reduce_scatter || e.best.algorithm != NcclAlgorithm::ring ||
      e.best.protocol != NcclProtocol::simple)
    return 0;
  const double part = std::floor(e.size / e.ranks());
  int unaligned = 0;
  for (int rank = 0; rank < e.ranks(); ++rank) unaligned += std::fmod(rank * part, kAlignment) != 0 ? 1 : 0;
  const double rate = ring_bandwidth(e, NcclProtocol::simple) * e.ranks() / ring_rounds(e).all;
  return e.size / rate * unaligned / e.ranks() * (1 / kShare - 1);
}

/// Two nodes exchange only half of a tree's data each way, so that from 2.8 on the search gives a tree
/// between two nodes twice the network's rate ("increase bwIntra for trees", src/graph/search.cc).
double tree_bandwidth(const Estimates& e, NcclProtocol protocol) {
  const NcclLimits& limits = e.limits();
  const NcclTuning& tuning = e.tuning();
  const std::size_t n = e.by_nodes();
  const double twice = e.nodes() == 2 && e.software.nccl >= 208 ? 2 : 1;
  double all = std::min({e.channels.rings.value, twice * e.channels.ring_network(), limits.all * kGiga});
  all = std::min({tuning.tree * all, e.channels.channels * limits.tree[n] * kGiga,
                  (protocol == NcclProtocol::ll128 ? limits.all_trees_ll128 : limits.all_trees)[n] * kGiga});
  if (protocol == NcclProtocol::ll) return std::min(tuning.tree_ll * all, ll_limit(e));
  if (protocol == NcclProtocol::simple) return all;
  return std::min((e.nodes() == 1 ? 7 / 9.0 : tuning.tree_ll128) * all,
                  e.channels.channels * limits.tree_ll128[n] * kGiga);
}

void consider_tree(Estimates& e, NcclProtocol protocol) {
  const NcclTuning& table = e.tuning();
  const NcclLatency& local = e.channels.nvlink ? table.tree_nvlink : table.tree_pcie;
  const double network = latency_of(table.tree_network, protocol) * kMicro + e.channels.network_latency.value;
  const double depth = (e.channels.devices_per_node() - 1) * local_hop(e, local, protocol, false);
  const double latency =
      latency_of(table.tree_base, protocol) * kMicro + 2 * (depth + e.log_nodes() * network);
  const double rate =
      0.5 * tree_bandwidth(e, protocol) * nccl_tree_correction(e.software.nccl, protocol, e.size);
  e.consider(e.channels.latency_factor * latency + e.size / rate, NcclAlgorithm::tree, protocol);
}

/// Considers NVLink SHARP: the NVSwitch adds inside a node, and between nodes the nodes form a tree. The
/// pipeline fills with chunks of up to 2 MiB a channel (half of NCCL_BUFFSIZE), which NCCL's model leaves
/// out: on two ways over the port inside a node, on four over NICs between nodes.
void consider_nvls(Estimates& e) {
  if (!e.software.nvls || !e.all_reduce() || e.channels.port.value == 0) return;
  constexpr double kHop = 25 * kMicro, kNetwork = 14 * kMicro, kChunk = 2 << 20;
  const double chunk = std::min(e.size / e.channels.channels, kChunk);
  const double inside = nvls_share(e.software.compute_capability) * e.channels.port.value;
  if (e.nodes() == 1) {
    if (e.ranks() <= 2) return;  // the switch adds nothing for two devices
    const double fill = 2 * chunk * e.channels.channels / e.channels.port.value;
    return e.consider(e.channels.latency_factor * kHop + e.size / inside + fill, NcclAlgorithm::nvls,
                      NcclProtocol::simple);
  }
  const double most = e.limits().nvls_tree[e.by_nodes()] * kGiga;
  const double nic = e.channels.network.value / e.channels.channels;
  const double channel = std::min(most, (e.nodes() == 2 ? 2 : 1) * nic);
  if (channel <= 0) return;
  const double rate = std::min(inside, e.channels.channels * channel * e.ranks() / ring_rounds(e).all);
  const double latency = kHop + 2 * e.log_nodes() * (kNetwork + e.channels.network_latency.value);
  e.consider(e.channels.latency_factor * latency + e.size / rate + 4 * chunk / nic, NcclAlgorithm::nvls_tree,
             NcclProtocol::simple);
}

/// Sends and receives between pairs, without a tuning model in NCCL. Fitted on the fit set's tables of
/// all-to-all and send-receive: 5 us in addition to the launch, 26 us more over the network; 81 % of NVLink's
/// rate up to Ampere and 92 % later; 44 % of a NIC, which one peer's single channel does not fill. Inside a
/// node a message takes a hop's latency of Simple for each peer once it fills a chunk of 512 KiB
/// (NCCL_P2P_NVL_CHUNKSIZE, src/init.cc), and less in proportion below.
void consider_direct(Estimates& e) {
  const bool to_all = e.operation == NcclOperation::all_to_all;
  const double ranks = e.ranks(), local_ranks = e.channels.devices_per_node();
  const double share = e.software.compute_capability >= 90 ? 0.92 : 0.81;
  const double inside = e.channels.port.value > 0 ? share * e.channels.port.value : e.channels.rings.value;
  const double outside = kDirectNetworkShare * e.channels.network.value / local_ranks;
  const double far = to_all ? e.size * (ranks - local_ranks) / ranks : e.nodes() > 1 ? e.size : 0;
  const double near = to_all ? e.size * (local_ranks - 1) / ranks : local_ranks > 1 ? e.size : 0;
  double seconds = (e.nodes() > 1 ? 31 * kMicro : 5 * kMicro) + e.channels.network_latency.value;
  constexpr double kChunk = 1 << 19;
  if (e.nodes() == 1)
    seconds += std::min(1.0, (to_all ? e.size / ranks : e.size) / kChunk) *
               latency_of(e.tuning().ring_nvlink, NcclProtocol::simple) * kMicro * (to_all ? ranks - 1 : 1);
  seconds *= e.channels.latency_factor;
  seconds += std::max(far > 0 ? far / outside : 0, near > 0 ? near / inside : 0);
  e.consider(seconds, NcclAlgorithm::direct, NcclProtocol::simple);
}

}  // namespace

const std::vector<std::string>& nccl_operation_names() {
  static const std::vector<std::string> names{"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                              "reduce",     "alltoall",   "sendrecv"};
  return names;
}

std::string to_string(NcclAlgorithm algorithm) {
  static const std::array<const char*, 5> names{"RING", "TREE", "NVLS", "NVLSTREE", "P2P"};
  return names.at(ordinal(algorithm));
}

std::string to_string(NcclProtocol protocol) {
  static const std::array<const char*, 3> names{"LL", "LL128", "SIMPLE"};
  return names.at(ordinal(protocol));
}

NcclTime nccl_time(const Software& software, const NcclChannels& channels, NcclOperation operation,
                   Bytes size, RankParts parts) {
  if (channels.ranks < 2) return {};
  Estimates e{software, channels, operation, size.value};
  if (operation == NcclOperation::all_to_all || operation == NcclOperation::send_receive) {
    consider_direct(e);
  } else if (software.nccl < kFirstWithTrees) {
    e.best = early_ring_time(software, channels, operation, size.value);
  } else {
    const bool trees = operation == NcclOperation::all_reduce && software.trees;
    for (const NcclProtocol protocol : {NcclProtocol::ll, NcclProtocol::ll128, NcclProtocol::simple}) {
      if (protocol == NcclProtocol::ll128 && !has_ll128(e)) continue;
      consider_ring(e, protocol);
      if (trees) consider_tree(e, protocol);
    }
    if (software.trees) consider_nvls(e);
    if (parts == RankParts::by_size) e.best.time.value += unaligned_seconds(e);
  }
  const int launched = software.one_process ? channels.devices_per_node() : 1;
  const double further = software.nccl < 209 ? kFurtherCooperativeLaunch : kFurtherLaunch;
  const double launches = channels.latency_factor * (launched - 1) * further;
  e.best.time.value = channels.latency_factor * kLaunch + std::max(e.best.time.value, launches);
  return e.best;
}

double bus_factor(NcclOperation operation, int ranks) {
  const double share = (ranks - 1.0) / ranks;
  switch (operation) {
    case NcclOperation::all_reduce:
      return 2 * share;
    case NcclOperation::all_gather:
    case NcclOperation::reduce_scatter:
    case NcclOperation::all_to_all:
      return share;
    default:
      return 1;
  }
}

int ranks_of_bandwidths(NcclOperation operation, double algorithm, double bus) {
  constexpr double kRounding = 0.005;
  const double most = bus_factor(operation, 2) * 2;  // of many ranks: 2 (n - 1) / n or (n - 1) / n
  if (bus_factor(operation, 4) == bus_factor(operation, 2) || algorithm <= kRounding) return 0;
  const double low = (bus - kRounding) / (algorithm + kRounding),
               high = (bus + kRounding) / (algorithm - kRounding);
  if (high >= most) return 0;
  const double fewest = std::ceil(most / (most - low)), greatest = std::floor(most / (most - high));
  return fewest == greatest && fewest >= 2 && fewest <= 1 << 20 ? static_cast<int>(fewest) : 0;
}

}  // namespace stepcast
