#include <catch2/catch.hpp>
#include <limits>

#include "strategies/nccl/channels.hpp"
#include "strategies/nccl/collective_time.hpp"

using namespace stepcast;

namespace {

constexpr double kMicro = 1e-6, kKibi = 1024, kMebi = 1024 * kKibi;
constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Eight devices of one node, four rings of 15 GB/s over NVLinks.
NcclChannels mesh() {
  NcclChannels channels;
  channels.ranks = 8;
  channels.channels = 4;
  channels.nvlink = true;
  channels.rings = {60e9};
  channels.network = channels.nic = channels.host_copy = {kInfinite};
  return channels;
}

/// Eight nodes with one device each, whose data passes the host at 36 GB/s.
NcclChannels chain(double host_copy = 36e9) {
  NcclChannels channels;
  channels.nodes = channels.ranks = 8;
  channels.rings = {kInfinite};
  channels.network = channels.nic = {12e9};
  channels.host_copy = {host_copy};
  return channels;
}

NcclTime time_of(const NcclChannels& channels, NcclOperation operation, double size, int version = 201) {
  Software software;
  software.nccl = version;
  software.compute_capability = 60;
  return early_ring_time(software, channels, operation, size);
}

double seconds(const NcclChannels& channels, NcclOperation operation, double size) {
  return time_of(channels, operation, size).time.value;
}

}  // namespace

TEST_CASE("until 2.2 LL serves up to 16 KiB, of a rank's part in an all-gather", "[nccl]") {
  const auto protocol = [](NcclOperation operation, double size, int version) {
    return time_of(mesh(), operation, size, version).protocol;
  };
  CHECK(protocol(NcclOperation::all_reduce, 16 * kKibi, 202) == NcclProtocol::ll);
  CHECK(protocol(NcclOperation::all_reduce, 16 * kKibi + 4, 202) == NcclProtocol::simple);
  CHECK(protocol(NcclOperation::all_gather, 128 * kKibi, 202) == NcclProtocol::ll);
  CHECK(protocol(NcclOperation::all_reduce, 64 * kKibi, 203) == NcclProtocol::ll);
}

TEST_CASE("a single ring carries a rank's part of up to 128 KiB, all rings a larger one", "[nccl]") {
  const double latency = (8.4 + 7 * 5.7) * kMicro;
  CHECK(seconds(mesh(), NcclOperation::all_gather, kMebi) == Approx(latency + 7 / 8.0 * kMebi / 15e9));
  CHECK(seconds(mesh(), NcclOperation::all_gather, 2 * kMebi) ==
        Approx(latency + 7 / 8.0 * 2 * kMebi / 60e9));
  CHECK(seconds(mesh(), NcclOperation::all_reduce, 2 * kMebi) ==
        Approx((8.4 + 14 * 5.7) * kMicro + 7 / 4.0 * 2 * kMebi / 60e9));
}

TEST_CASE("a broadcast fills a pipeline of n - 2 slices of 512 KiB on each of the doubled rings", "[nccl]") {
  const double latency = (8.4 + 7 * 5.7) * kMicro;
  for (const NcclOperation operation : {NcclOperation::broadcast, NcclOperation::reduce}) {
    CHECK(seconds(mesh(), operation, 64 * kMebi) == Approx(latency + (64 + 6 * 4) * kMebi / 60e9));
    CHECK(seconds(mesh(), operation, kMebi) == Approx(latency + 7 * kMebi / 60e9));
  }
}

TEST_CASE("between nodes LL passes proxies at every hop, and a broadcast counts one hop", "[nccl]") {
  const double hop = 6.9 * kMicro, start = (17.5 + 3.6) * kMicro;
  CHECK(seconds(chain(), NcclOperation::all_reduce, 8) == Approx(start + 14 * hop).epsilon(1e-3));
  CHECK(seconds(chain(), NcclOperation::broadcast, 8) == Approx(start + hop).epsilon(1e-3));
}

TEST_CASE(
    "without GPUDirect a rank's part crosses the link to the host once a hop, until a second loop hides it",
    "[nccl]") {
  const auto staging = [](double size) {
    return seconds(chain(), NcclOperation::all_reduce, size) -
           seconds(chain(kInfinite), NcclOperation::all_reduce, size);
  };
  CHECK(staging(8 * kMebi) == Approx(14 * kMebi / 36e9));
  CHECK(staging(16 * kMebi) == Approx(0).margin(1e-12));
}

namespace {

/// The mesh of a DGX-1 with V100, numbered as in platforms/dgx1v.yaml: six links a device.
const std::vector<PeerLink> kMesh{{0, 1, 2}, {1, 2, 2}, {2, 3, 2}, {3, 4, 2}, {4, 5, 2}, {5, 6, 2},
                                  {6, 7, 2}, {0, 7, 2}, {0, 2, 1}, {0, 3, 1}, {1, 3, 1}, {2, 5, 1},
                                  {1, 6, 1}, {4, 7, 1}, {5, 7, 1}, {4, 6, 1}};

std::vector<PeerLink> all_to_all(int devices, int cables) {
  std::vector<PeerLink> peers;
  for (int a = 0; a < devices; ++a) {
    for (int b = a + 1; b < devices; ++b) peers.push_back({a, b, cables});
  }
  return peers;
}

}  // namespace

TEST_CASE("six rings pass the eight devices of a DGX-1, over all six links of each", "[nccl]") {
  CHECK(rings_over_links(kMesh, {0, 1, 2, 3, 4, 5, 6, 7}) == 6);
}

TEST_CASE("four devices of a DGX-1 share four rings, and two the cables between them", "[nccl]") {
  CHECK(rings_over_links(kMesh, {0, 1, 2, 3}) == 4);
  CHECK(rings_over_links(kMesh, {0, 1}) == 2);
  CHECK(rings_over_links(kMesh, {0, 3}) == 1);
}

TEST_CASE("rings use every link of a complete graph with an even number of links each", "[nccl]") {
  CHECK(rings_over_links(all_to_all(3, 1), {0, 1, 2}) == 2);
  CHECK(rings_over_links(all_to_all(4, 2), {0, 1, 2, 3}) == 6);  // four V100 with two links to each other
  CHECK(rings_over_links(all_to_all(5, 1), {0, 1, 2, 3, 4}) == 4);
}

TEST_CASE("devices without a ring of links have none", "[nccl]") {
  CHECK(rings_over_links({}, {0, 1, 2, 3}) == 0);
  CHECK(rings_over_links({{0, 1, 2}, {1, 2, 2}}, {0, 1, 2}) == 0);  // a chain
  CHECK(rings_over_links(kMesh, {0, 4}) == 0);
  CHECK(rings_over_links(kMesh, {0}) == 0);
}
