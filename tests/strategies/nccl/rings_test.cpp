#include <catch2/catch.hpp>

#include "strategies/nccl/channels.hpp"

using namespace stepcast;

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
