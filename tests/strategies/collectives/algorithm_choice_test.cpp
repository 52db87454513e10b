#include "strategies/collectives/algorithm_choice.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

TEST_CASE("MPI's all-reduce is what Open MPI 4.1 decides on", "[strategies]") {
  const auto decided = [](int ranks, double bytes) {
    return resolved_choice({.algorithm = Algorithm::mpi}, ranks, {bytes}).algorithm;
  };
  CHECK(decided(2, 4) == Algorithm::ring);
  CHECK(decided(2, 4095) == Algorithm::recursive_doubling);
  CHECK(decided(3, 4096) == Algorithm::ring);
  CHECK(decided(3, 262'143) == Algorithm::ring);
  CHECK(decided(2, 262'144) == Algorithm::halving_doubling);
  CHECK(decided(4, 8191) == Algorithm::recursive_doubling);
  CHECK(decided(4, 8192) == Algorithm::halving_doubling);
  CHECK(decided(8, 4) == Algorithm::recursive_doubling);
  CHECK(decided(16, 63) == Algorithm::ring);
  CHECK(decided(127, 100'000) == Algorithm::recursive_doubling);
  CHECK(decided(300, 4095) == Algorithm::binomial_tree);
  CHECK(decided(1024, 2047) == Algorithm::binomial_tree);
  CHECK(decided(1024, 4095) == Algorithm::recursive_doubling);
  CHECK(decided(3000, 4095) == Algorithm::ring);
  CHECK(decided(3000, 1e8) == Algorithm::halving_doubling);
  CHECK(decided(8192, 1e8) == Algorithm::ring);
}

TEST_CASE("Aluminum's all-reduce is MPI's for small buffers of many ranks, else NCCL's ring",
          "[strategies]") {
  const auto decided = [](int ranks, double elements) {
    return resolved_choice({.algorithm = Algorithm::aluminum}, ranks, {4 * elements}).algorithm;
  };
  CHECK(decided(63, 1) == Algorithm::ring);
  CHECK(decided(64, 512) == Algorithm::recursive_doubling);
  CHECK(decided(64, 513) == Algorithm::halving_doubling);
  CHECK(decided(127, 4096) == Algorithm::halving_doubling);
  CHECK(decided(127, 4097) == Algorithm::ring);
  CHECK(decided(128, 8192) == Algorithm::halving_doubling);
  CHECK(decided(255, 8193) == Algorithm::ring);
  CHECK(decided(256, 32768) == Algorithm::halving_doubling);
  CHECK(decided(512, 65536) == Algorithm::halving_doubling);
  CHECK(decided(2047, 65537) == Algorithm::ring);
  CHECK(decided(2048, 262144) == Algorithm::halving_doubling);
  CHECK(decided(2048, 262145) == Algorithm::ring);
  CHECK(resolved_choice({.algorithm = Algorithm::aluminum, .channels = 3}, 4, {1e6}).channels == 3);
}

TEST_CASE("a choice of ours is what is played", "[strategies]") {
  const AllReduceChoice rings{.algorithm = Algorithm::ring, .channels = 3};
  CHECK(resolved_choice(rings, 4, {1e6}).channels == 3);
  const auto schedule = all_reduce_schedule({.algorithm = Algorithm::mpi}, {4, 1}, {1e6});
  CHECK(message_count(*schedule) == message_count(halving_doubling_all_reduce({4, 1})));
}
