#include <algorithm>
#include <cmath>

#include "strategies/nccl/collective_time.hpp"

namespace stepcast {
namespace {

constexpr double kMicroseconds = 1e-6;
constexpr double kKibi = 1024, kMebi = 1024 * kKibi;

/// Waking a ring's proxy threads, and a hop of LL through them. Both from the rows of 8 bytes of
/// minsky-8-nodes-edr and minsky-8-nodes-edr-reduce (validate/data/nccl_tests.yaml, both `fit`): 124 us for
/// 14 hops, 34 us for one.
constexpr double kProxyStart = 17.5e-6, kProxyLines = 6e-6;

constexpr double kMostOfLl = 16 * kKibi;
constexpr double kSlice = 512 * kKibi;  ///< buffer of 4 MiB / 2 chunks / 4 substeps
constexpr double kChunk = 2 * kMebi;    ///< buffer of 4 MiB / 2 chunks
constexpr double kDuplicates = 2;       ///< of each ring over NVLinks

struct Ring {
  const Software& software;
  const NcclChannels& channels;
  NcclOperation operation;
  double size;

  bool one_way() const { return operation == NcclOperation::broadcast || operation == NcclOperation::reduce; }
  bool all_reduce() const { return operation == NcclOperation::all_reduce; }
  /// The size that is compared with thresholds [bytes].
  double counted() const { return one_way() || all_reduce() ? size : size / channels.ranks; }
  double rounds() const { return (all_reduce() ? 2 : 1) * (channels.ranks - 1.0); }
  double crossings() const { return (all_reduce() ? 2 : 1) * (channels.nodes - 1.0); }
};

double rate_of(const Ring& ring) {
  const NcclChannels& channels = ring.channels;
  const double all = std::min(channels.rings.value, channels.ring_network());
  const double most_of_one_ring = (ring.software.compute_capability >= 70 ? 256 : 128) * kKibi;
  const bool single = ring.software.nccl < 203 && ring.counted() <= most_of_one_ring;
  return single ? all / channels.channels : all;
}

double ring_latency(const Ring& ring, NcclProtocol protocol) {
  const NcclTuning& table = nccl_tuning(ring.software.nccl);
  const NcclChannels& channels = ring.channels;
  const double local =
      latency_of(channels.nvlink ? table.ring_nvlink : table.ring_pcie, protocol) * kMicroseconds;
  const double network = latency_of(table.ring_network, protocol) * kMicroseconds +
                         channels.network_latency.value + (protocol == NcclProtocol::ll ? kProxyLines : 0);
  const double crossings = ring.one_way() ? std::min(1.0, ring.crossings()) : ring.crossings();
  const double start = channels.nodes > 1 ? kProxyStart : 0;
  return start + latency_of(table.ring_base, protocol) * kMicroseconds +
         (ring.rounds() - ring.crossings()) * local + crossings * network;
}

/// Slices that fill the pipeline of a broadcast or reduce inside a node.
double fill_of(const Ring& ring, double rate) {
  if (!ring.one_way() || ring.channels.nodes > 1) return 0;
  const double rings = (ring.channels.nvlink ? kDuplicates : 1) * ring.channels.channels;
  return (ring.channels.ranks - 2) * std::min(ring.size, kSlice * rings) / rate;
}

double staging_of(const Ring& ring) {
  if (ring.channels.nodes == 1 || !std::isfinite(ring.channels.host_copy.value)) return 0;
  const double part = ring.size / ring.channels.channels / (ring.one_way() ? 1 : ring.channels.ranks);
  if (ring.one_way()) return 2 * std::min(part, kSlice) / ring.channels.host_copy.value;
  return part < kChunk ? ring.crossings() * part / ring.channels.host_copy.value : 0;
}

double seconds_of(const Ring& ring, NcclProtocol protocol) {
  const double algorithm_share = ring.one_way() ? 1 : ring.channels.ranks / ring.rounds();
  const double latency = ring.channels.latency_factor * ring_latency(ring, protocol);
  if (protocol == NcclProtocol::ll) {
    const double share = ring.channels.nodes > 1 || ring.all_reduce() ? 0.25 : 1 / 3.0;
    return latency + ring.size / (share * rate_of(ring) * algorithm_share);
  }
  const double rate = rate_of(ring);
  return latency + fill_of(ring, rate) + staging_of(ring) + ring.size / (rate * algorithm_share);
}

}  // namespace

NcclTime early_ring_time(const Software& software, const NcclChannels& channels, NcclOperation operation,
                         double size) {
  const Ring ring{software, channels, operation, size};
  const NcclTime ll{{seconds_of(ring, NcclProtocol::ll)}, NcclAlgorithm::ring, NcclProtocol::ll};
  const NcclTime simple{{seconds_of(ring, NcclProtocol::simple)}, NcclAlgorithm::ring, NcclProtocol::simple};
  if (software.nccl < 203) return ring.counted() <= kMostOfLl ? ll : simple;
  return ll.time.value < simple.time.value ? ll : simple;
}

}  // namespace stepcast
