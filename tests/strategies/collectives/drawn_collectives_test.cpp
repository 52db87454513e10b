#include <catch2/catch.hpp>
#include <cstdlib>
#include <vector>

#include "core/random.hpp"
#include "strategies/arithmetic/compressed_values.hpp"
#include "strategies/collectives/algorithm_choice.hpp"
#include "tests/strategies/collectives/play.hpp"

// Laws of collectives and sums in 1,000 drawn cases. DRAWN_SEED chooses others.
namespace stepcast::drawn_collectives_test {
namespace {

constexpr std::uint32_t kCases = 1000;

/// Draws for one case; the number of the case and the seed say which.
struct Draw {
  std::uint64_t seed;
  std::uint32_t number;

  std::size_t index(std::uint32_t what, std::size_t count) const {
    return uniform_index({seed, Purpose::data, number, what, 0}, count);
  }
  int from(std::uint32_t what, int least, int most) const {
    return least + static_cast<int>(index(what, most - least + 1));
  }
};

std::uint64_t seed_of_run() {
  const char* given = std::getenv("DRAWN_SEED");
  return given == nullptr ? 1 : std::strtoull(given, nullptr, 10);
}

Group drawn_group(const Draw& draw) {
  const int per_node = draw.from(0, 1, 8), nodes = draw.from(1, 1, 8);
  return {nodes * per_node, per_node};
}

AllReduceChoice drawn_choice(const Draw& draw) {
  const auto algorithm = static_cast<Algorithm>(
      draw.from(2, static_cast<int>(Algorithm::ring), static_cast<int>(Algorithm::hierarchical)));
  return {.algorithm = algorithm,
          .channels = draw.from(3, 1, 4),
          .local = static_cast<LocalPart>(draw.from(4, 0, 1)),
          .network = static_cast<NetworkPart>(draw.from(5, 0, 2)),
          .tree_piece = {4.0 * draw.from(6, 1, 500)}};
}

/// Whole numbers below 2^20, whose sums over 64 ranks are exact in any order.
Buffers drawn_buffers(const Draw& draw, int ranks, std::int64_t elements) {
  Buffers buffers(ranks, std::vector<double>(elements));
  std::uint64_t state = mixed_hash(draw.seed, draw.number);
  for (std::vector<double>& buffer : buffers) {
    for (double& value : buffer) value = (state = mixed_hash(state, 1)) >> 44;
  }
  return buffers;
}

std::vector<double> sum_of(const Buffers& buffers) {
  std::vector<double> sum(buffers.front().size());
  for (const std::vector<double>& one : buffers)
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += one[i];
  return sum;
}

struct Moved {
  std::int64_t added = 0, replaced = 0;  ///< elements of all messages, by what happens on arrival
};

Moved moved_by(const Schedule& schedule, std::int64_t elements) {
  Moved moved;
  for (const Phase& phase : schedule.phases) {
    for (const Edge& edge : *phase.edges) {
      for (int k = 0; k < phase.active; ++k) {
        const std::int64_t size = slice_of(schedule, phase, edge, k, elements).size();
        (phase.on_receive == OnReceive::reduce ? moved.added : moved.replaced) += size;
      }
    }
  }
  return moved;
}

/// Names the case, so that it can be drawn again.
std::string named(const Draw& draw, const Group& group, const AllReduceChoice& choice,
                  std::int64_t elements) {
  return "seed " + std::to_string(draw.seed) + ", case " + std::to_string(draw.number) + ": " +
         algorithm_names()[static_cast<std::size_t>(choice.algorithm)] + ", " + std::to_string(group.ranks) +
         " ranks, " + std::to_string(group.ranks_per_node) + " a node, " + std::to_string(elements) +
         " elements";
}

}  // namespace

TEST_CASE("1,000 drawn all-reduces leave the exact sum on every rank and move no less than they must",
          "[collectives][drawn]") {
  for (Draw draw{seed_of_run(), 0}; draw.number < kCases; ++draw.number) {
    const Group group = drawn_group(draw);
    const AllReduceChoice choice = drawn_choice(draw);
    const std::int64_t elements = draw.from(7, 0, 600);
    INFO(named(draw, group, choice, elements));
    const auto schedule = all_reduce_schedule(choice, group, {4.0 * elements});
    Buffers buffers = drawn_buffers(draw, group.ranks, elements);
    const std::vector<double> expected = sum_of(buffers);
    play(*schedule, buffers);
    for (const std::vector<double>& buffer : buffers) REQUIRE(buffer == expected);
    // Each element needs P - 1 additions, and P - 1 ranks must get something that they did not add.
    const Moved moved = moved_by(*schedule, elements);
    REQUIRE(moved.added >= (group.ranks - 1) * elements);
    REQUIRE(moved.added + moved.replaced <= std::int64_t{group.ranks} * 2 * 8 * elements);
  }
}

TEST_CASE("1,000 drawn reduce-scatters and all-gathers make up the all-reduce", "[collectives][drawn]") {
  for (Draw draw{seed_of_run(), 0}; draw.number < kCases; ++draw.number) {
    const Group group = drawn_group(draw);
    const int channels = draw.from(3, 1, 4);
    const std::int64_t elements = draw.from(7, 0, 600);
    CAPTURE(draw.seed, draw.number, group.ranks, channels, elements);
    Buffers buffers = drawn_buffers(draw, group.ranks, elements);
    const std::vector<double> expected = sum_of(buffers);
    const Schedule first = ring_reduce_scatter(group, channels), second = ring_all_gather(group, channels);
    play(first, buffers);
    play(second, buffers);
    for (const std::vector<double>& buffer : buffers) REQUIRE(buffer == expected);
    REQUIRE(moved_by(first, elements).added == (group.ranks - 1) * elements);
    REQUIRE(moved_by(second, elements).replaced == (group.ranks - 1) * elements);
  }
}

TEST_CASE("in 1,000 drawn cases what compression sends and keeps adds up to the gradients",
          "[collectives][drawn]") {
  for (Draw draw{seed_of_run(), 0}; draw.number < kCases; ++draw.number) {
    const auto elements = static_cast<std::size_t>(draw.from(7, 1, 600)),
               rows = static_cast<std::size_t>(draw.from(8, 1, 200));
    std::vector<float> gradient(elements), residual(elements), restored(elements);
    for (std::size_t i = 0; i < elements; ++i)
      gradient[i] = normal({draw.seed, Purpose::data, draw.number, 9, static_cast<std::uint32_t>(i)});
    CAPTURE(draw.seed, draw.number, elements, rows);
    OneBitGradient bits;
    for (int step = 1; step <= 3; ++step) {
      std::vector<float> before = residual;
      quantize_one_bit(gradient, rows, residual, bits);
      restore_one_bit(bits, restored);
      for (std::size_t i = 0; i < elements; ++i)
        REQUIRE(restored[i] + residual[i] == Approx(gradient[i] + before[i]).margin(1e-5));
    }
  }
}

}  // namespace stepcast::drawn_collectives_test
