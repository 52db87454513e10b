#include <algorithm>
#include <catch2/catch.hpp>

#include "ranks.hpp"
#include "runtime/collectives/rank_collectives.hpp"
#include "runtime/collectives/schedule_executor.hpp"
#include "strategies/collectives/algorithm_choice.hpp"

namespace stepcast::collectives_test {
namespace {

using Values = std::vector<float>;

/// Whole numbers, so that sums are exact; neighbouring elements differ.
Values whole_numbers(int rank, std::int64_t elements) {
  Values values;
  for (std::int64_t i = 0; i < elements; ++i) values.push_back((7 * rank + 3 * i) % 1001);
  return values;
}

Values sum_of(int ranks, std::int64_t elements) {
  Values sum(elements, 0);
  for (int rank = 0; rank < ranks; ++rank) {
    const Values one = whole_numbers(rank, elements);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  }
  return sum;
}

/// Executes the schedule over the transport, each rank on its buffer.
void play_on(const std::string& kind, const Schedule& schedule, std::vector<Values>& buffers) {
  run_ranks(kind, schedule.ranks, [&](Transport& transport) {
    Values& buffer = buffers[transport.rank().index()];
    const std::int64_t elements = buffer.size();
    execute_rounds(transport, rounds_of(schedule, transport.rank().value, elements), buffer.data());
    barrier(transport);
  });
}

/// The buffer of each rank after that, from whole numbers.
std::vector<Values> played(const std::string& kind, const Schedule& schedule, std::int64_t elements) {
  std::vector<Values> buffers;
  for (int rank = 0; rank < schedule.ranks; ++rank) buffers.push_back(whole_numbers(rank, elements));
  play_on(kind, schedule, buffers);
  return buffers;
}

}  // namespace

TEST_CASE("every real all-reduce leaves exactly the sum on every rank", "[validate][collectives]") {
  const std::string kind = GENERATE("memory", "sockets");
  const int ranks = GENERATE(1, 2, 3, 4, 5, 6, 7, 8);
  const std::int64_t elements = GENERATE(1, 1000, 200'003);  // the last does not fit into a ring buffer
  std::vector<AllReduceChoice> choices = candidates({.tree_piece = {40'000}}, {ranks, 1});
  for (const Algorithm algorithm : {Algorithm::binomial_tree, Algorithm::mpi})
    choices.push_back({.algorithm = algorithm});
  for (const int channels : {2, 3}) choices.push_back({.algorithm = Algorithm::ring, .channels = channels});
  for (const AllReduceChoice& choice : choices) {
    CAPTURE(kind, ranks, elements, algorithm_names()[static_cast<std::size_t>(choice.algorithm)]);
    const auto schedule = all_reduce_schedule(choice, {ranks, 1}, {4.0 * elements});
    for (const Values& buffer : played(kind, *schedule, elements)) CHECK(buffer == sum_of(ranks, elements));
  }
}

TEST_CASE("a real hierarchical all-reduce leaves exactly the sum on every rank", "[validate][collectives]") {
  const std::string kind = GENERATE("memory", "sockets");
  const int ranks = GENERATE(1, 2, 3, 4, 5, 6, 7, 8);
  const LocalPart local = GENERATE(LocalPart::reduce_scatter, LocalPart::leader, LocalPart::flat);
  const NetworkPart network =
      GENERATE(NetworkPart::ring, NetworkPart::halving_doubling, NetworkPart::binomial_tree);
  for (int each = 1; each <= ranks; ++each) {
    if (ranks % each != 0) continue;
    CAPTURE(kind, ranks, each);
    const Schedule schedule = hierarchical_all_reduce({ranks, each, each / 2}, local, network);
    for (const Values& buffer : played(kind, schedule, 30'001)) CHECK(buffer == sum_of(ranks, 30'001));
  }
}

TEST_CASE("every algorithm that Open MPI would choose leaves exactly the sum on every rank",
          "[validate][collectives]") {
  const int ranks = GENERATE(1, 2, 3, 4, 5, 6, 7, 8);
  const std::int64_t elements = GENERATE(1, 3, 100, 1500, 3000, 10'000, 100'000);
  const auto schedule = all_reduce_schedule({.algorithm = Algorithm::mpi}, {ranks, 1}, {4.0 * elements});
  CAPTURE(ranks, elements);
  for (const Values& buffer : played("memory", *schedule, elements)) CHECK(buffer == sum_of(ranks, elements));
}

TEST_CASE("a real reduce-scatter leaves exactly the sums of the parts, which an all-gather distributes",
          "[validate][collectives]") {
  const std::string kind = GENERATE("memory", "sockets");
  const int ranks = GENERATE(2, 3, 4, 5, 6, 7, 8);
  const int channels = GENERATE(1, 2);
  constexpr std::int64_t kElements = 70'001;
  CAPTURE(kind, ranks, channels);
  const Schedule scatter = ring_reduce_scatter({ranks, 1}, channels),
                 gather = ring_all_gather({ranks, 1}, channels);
  const Values sum = sum_of(ranks, kElements);
  std::vector<Values> buffers = played(kind, scatter, kElements);
  std::vector<int> owners(sum.size(), 0);
  for (int rank = 0; rank < ranks; ++rank) {
    Values& buffer = buffers[rank];
    Values own(sum.size(), -1);  // values of the other parts have no influence
    for (const Slice& slice : slices_after_reduce_scatter(scatter, rank, kElements)) {
      for (std::size_t i = slice.begin; i < static_cast<std::size_t>(slice.end); ++i) {
        own[i] = buffer[i];
        ++owners[i];
      }
    }
    buffer = own;
  }
  CHECK(owners == std::vector<int>(sum.size(), 1));
  play_on(kind, gather, buffers);
  for (const Values& buffer : buffers) CHECK(buffer == sum);
}

TEST_CASE("a real broadcast gives every rank the root's buffer and a reduce gives the root the sum",
          "[validate][collectives]") {
  const std::string kind = GENERATE("memory", "sockets");
  const int ranks = GENERATE(1, 2, 3, 4, 5, 6, 7, 8);
  CAPTURE(kind, ranks);
  for (const Schedule& schedule : {binomial_broadcast({ranks, 1}), flat_broadcast({ranks, 1})}) {
    for (const Values& buffer : played(kind, schedule, 70'000)) CHECK(buffer == whole_numbers(0, 70'000));
  }
  for (const Schedule& schedule : {binomial_reduce({ranks, 1}), flat_reduce({ranks, 1})})
    CHECK(played(kind, schedule, 70'000)[0] == sum_of(ranks, 70'000));
}

TEST_CASE("a real all-to-all transposes the exchange matrix", "[validate][collectives]") {
  const std::string kind = GENERATE("memory", "sockets");
  const int ranks = GENERATE(1, 2, 3, 4, 5, 6, 7, 8);
  constexpr std::size_t kPart = 5000;
  const auto count = static_cast<std::size_t>(ranks), all = count * count * kPart;
  CAPTURE(kind, ranks);
  const auto buffers = played(kind, all_to_all({ranks, 1}), static_cast<std::int64_t>(all));
  for (std::size_t source = 0; source < count; ++source) {
    const Values sent = whole_numbers(source, all);
    for (std::size_t target = 0; target < count; ++target) {
      const std::ptrdiff_t begin = (source * count + target) * kPart;
      CHECK(std::equal(sent.begin() + begin, sent.begin() + begin + kPart, buffers[target].begin() + begin));
    }
  }
}

TEST_CASE("all-reduced fractions have the same bits on every rank and in every run",
          "[validate][collectives]") {
  const std::string kind = GENERATE("memory", "sockets");
  const auto schedule =
      all_reduce_schedule({.algorithm = Algorithm::double_tree, .tree_piece = {4096}}, {7, 1}, {80'000});
  const auto sum = [&] {
    std::vector<Values> buffers(7);
    run_ranks(kind, 7, [&](Transport& transport) {
      Values& buffer = buffers[transport.rank().index()];
      for (int i = 0; i < 20'000; ++i)
        buffer.push_back(1.0f / static_cast<float>(1 + i + transport.rank().value));
      execute_rounds(transport, rounds_of(*schedule, transport.rank().value, 20'000), buffer.data());
    });
    return buffers;
  };
  const auto first = sum();
  for (const Values& buffer : first) CHECK(buffer == first[0]);
  CHECK(sum() == first);
}

TEST_CASE("a rank sends the values from before the round", "[validate][collectives]") {
  // Rank 0 sends the first two thirds and receives into the last two.
  const auto edges = std::make_shared<const std::vector<Edge>>(
      std::vector<Edge>{{.source = 0, .target = 1, .chunk = 0, .chunks = 2},
                        {.source = 1, .target = 0, .chunk = 1, .chunks = 2}});
  Phase phase;
  phase.edges = edges;
  phase.modulus = 3;
  const Schedule schedule{2, 3, {phase}};
  CHECK(rounds_of(schedule, 0, 15)[0][0].copy_first);
  const auto buffers = played(GENERATE("memory", "sockets"), schedule, 300'000);
  const Values zero = whole_numbers(0, 300'000), one = whole_numbers(1, 300'000);
  for (const std::size_t i : {0u, 99'999u, 100'000u, 199'999u, 200'000u, 299'999u}) {
    CHECK(buffers[0][i] == zero[i] + (i >= 100'000 ? one[i] : 0));
    CHECK(buffers[1][i] == one[i] + (i < 200'000 ? zero[i] : 0));
  }
}

}  // namespace stepcast::collectives_test
