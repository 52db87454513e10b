#include <catch2/catch.hpp>
#include <functional>
#include <map>

#include "strategies/collectives/algorithm_choice.hpp"
#include "strategies/collectives/schedule.hpp"
#include "tests/strategies/collectives/play.hpp"

using namespace stepcast;

namespace {

using Builder = std::function<Schedule(const Group&)>;

const std::map<std::string, Builder>& all_reduces() {
  static const std::map<std::string, Builder> builders{
      {"ring", [](const Group& g) { return ring_all_reduce(g); }},
      {"two rings", [](const Group& g) { return ring_all_reduce(g, 2); }},
      {"halving_doubling", halving_doubling_all_reduce},
      {"recursive_doubling", recursive_doubling_all_reduce},
      {"binomial_tree", binomial_all_reduce},
      {"double_tree, 1 piece", [](const Group& g) { return double_tree_all_reduce(g, 1); }},
      {"double_tree, 5 pieces", [](const Group& g) { return double_tree_all_reduce(g, 5); }},
  };
  return builders;
}

double expected_sum(int ranks, std::int64_t element) {
  return ranks * (ranks + 1) / 2.0 + 1000.0 * element * ranks;
}

void check_sum(const Schedule& schedule, int ranks, std::int64_t elements) {
  Buffers buffers = numbered(ranks, elements);
  play(schedule, buffers);
  for (const auto& buffer : buffers) {
    for (std::int64_t i = 0; i < elements; ++i) {
      REQUIRE(buffer[i] == expected_sum(ranks, i));
    }
  }
}

/// Largest number of elements that one rank sends.
double most_sent(const Schedule& schedule, std::int64_t elements) {
  std::map<int, double> sent;
  for (const Phase& phase : schedule.phases) {
    for (const Edge& edge : *phase.edges) {
      for (int k = 0; k < phase.active; ++k) {
        sent[edge.source] += static_cast<double>(slice_of(schedule, phase, edge, k, elements).size());
      }
    }
  }
  double most = 0;
  for (const auto& [rank, count] : sent) most = std::max(most, count);
  return most;
}

int rounds(const Schedule& schedule) {
  int count = 0;
  for (const Phase& phase : schedule.phases) count += phase.rounds;
  return count;
}

}  // namespace

TEST_CASE("every all-reduce leaves the sum on every rank, for any number of ranks and elements",
          "[collectives]") {
  for (const auto& [name, build] : all_reduces()) {
    for (const int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 16, 23, 32}) {
      for (const std::int64_t elements : {0, 1, 7, 64, 100}) {
        CAPTURE(name, ranks, elements);
        check_sum(build({ranks, 1}), ranks, elements);
      }
    }
  }
}

TEST_CASE("rings over nodes of several ranks leave the sum", "[collectives]") {
  for (const int channels : {1, 2, 4}) check_sum(ring_all_reduce({12, 4}, channels), 12, 100);
}

TEST_CASE("every hierarchical all-reduce leaves the sum", "[collectives]") {
  for (const LocalPart local : {LocalPart::reduce_scatter, LocalPart::leader, LocalPart::flat}) {
    for (const NetworkPart network :
         {NetworkPart::ring, NetworkPart::halving_doubling, NetworkPart::binomial_tree}) {
      for (const int per_node : {1, 2, 4, 8}) {
        for (const int nodes : {1, 2, 3, 5, 8}) {
          const int root = per_node - 1;
          CAPTURE(per_node, nodes);
          check_sum(hierarchical_all_reduce({nodes * per_node, per_node, root}, local, network),
                    nodes * per_node, 120);
        }
      }
    }
  }
  CHECK_THROWS_WITH(hierarchical_all_reduce({6, 4}, LocalPart::leader, NetworkPart::ring),
                    "hierarchical all-reduce: nodes need equal numbers of ranks");
}

TEST_CASE("a ring sends 2 (P-1)/P S elements a rank in 2 (P-1) rounds, also over channels", "[collectives]") {
  for (const int channels : {1, 2}) {
    const Schedule ring = ring_all_reduce({8, 4}, channels);
    CHECK(rounds(ring) == 14);
    CHECK(most_sent(ring, 160) == 2 * 7 * 160 / 8);
  }
}

TEST_CASE("halving-doubling sends 2 (P-1)/P S elements a rank in 2 log2 P rounds", "[collectives]") {
  const Schedule schedule = halving_doubling_all_reduce({16, 1});
  CHECK(rounds(schedule) == 8);
  CHECK(most_sent(schedule, 160) == 2 * 15 * 160 / 16);
  CHECK(rounds(halving_doubling_all_reduce({24, 1})) == 8 + 2);  // blocks of 16 and 8: two extra rounds
}

TEST_CASE("recursive doubling takes log2 P rounds and a binomial tree 2 ceil(log2 P), of the whole buffer",
          "[collectives]") {
  CHECK(rounds(recursive_doubling_all_reduce({16, 1})) == 4);
  CHECK(rounds(recursive_doubling_all_reduce({17, 1})) == 6);
  CHECK(rounds(binomial_all_reduce({17, 1})) == 10);
  CHECK(slice_of(binomial_all_reduce({2, 1}), binomial_all_reduce({2, 1}).phases[0], {}, 0, 77).size() == 77);
}

TEST_CASE("in a double tree no rank sends or receives more than two pieces a round", "[collectives]") {
  for (const int ranks : {2, 5, 8, 16, 31, 32, 33}) {
    const Schedule schedule = double_tree_all_reduce({ranks, 1}, 4);
    for (const Phase& phase : schedule.phases) {
      std::map<int, int> sends, receives;
      for (const Edge& edge : *phase.edges) {
        CHECK(++sends[edge.source] <= 2 + (phase.on_receive == OnReceive::copy));
        CHECK(++receives[edge.target] <= 2 + (phase.on_receive == OnReceive::reduce));
      }
    }
  }
}

TEST_CASE("reduce-scatter leaves each rank one summed part, and all-gather spreads them", "[collectives]") {
  Buffers buffers = numbered(6, 60);
  play(ring_reduce_scatter({6, 1}), buffers);
  for (std::int64_t rank = 0; rank < 6; ++rank) {
    const std::int64_t element = (rank + 1) % 6 * 10;
    CHECK(buffers[rank][element] == expected_sum(6, element));
  }
  play(ring_all_gather({6, 1}), buffers);
  for (const auto& buffer : buffers) CHECK(buffer[35] == expected_sum(6, 35));
}

TEST_CASE("broadcast gives every rank the root's buffer and reduce gives the root the sum", "[collectives]") {
  Buffers buffers = numbered(7, 3);
  play(binomial_broadcast({7, 1}), buffers);
  for (const auto& buffer : buffers) CHECK(buffer == numbered(1, 3)[0]);
  buffers = numbered(7, 3);
  play(binomial_reduce({7, 1}), buffers);
  CHECK(buffers[0][2] == expected_sum(7, 2));
}

TEST_CASE("all-to-all transposes the exchange matrix", "[collectives]") {
  constexpr int kRanks = 5;
  Buffers buffers(kRanks, std::vector<double>(kRanks * kRanks, -1));
  for (std::size_t s = 0; s < kRanks; ++s) {
    for (std::size_t t = 0; t < kRanks; ++t) buffers[s][s * kRanks + t] = 10.0 * s + static_cast<double>(t);
  }
  play(all_to_all({kRanks, 1}), buffers);
  for (std::size_t t = 0; t < kRanks; ++t) {
    for (std::size_t s = 0; s < kRanks; ++s) {
      CHECK(buffers[t][s * kRanks + t] == 10.0 * s + static_cast<double>(t));
    }
  }
}

TEST_CASE("collectives refuse impossible groups", "[collectives]") {
  for (const auto& [name, build] : all_reduces()) {
    CAPTURE(name);
    CHECK_THROWS_WITH(build({0, 1}), "a collective needs ranks >= 1");
  }
}

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
