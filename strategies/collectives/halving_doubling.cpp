#include <bit>

#include "strategies/collectives/schedule.hpp"

namespace stepcast {
namespace {

/// A power of two of consecutive ranks.
struct Block {
  int first, size;
};

std::vector<Block> binary_blocks(int ranks) {
  std::vector<Block> blocks;  // largest first
  for (int first = 0; first < ranks;) {
    const int size = std::bit_floor(static_cast<unsigned>(ranks - first));
    blocks.push_back({first, size});
    first += size;
  }
  return blocks;
}

/// Region (index among `size`) that member `i` owns after halving: its bits reversed, since bit 0 splits
/// first.
int owned_region(int i, int size) {
  int region = 0;
  for (int bit = 1; bit < size; bit <<= 1) region = region << 1 | ((i & bit) != 0);
  return region;
}

/// Parts that member `i` of a block still works on after exchanging along its `bits` lowest bits.
struct Region {
  int chunk, chunks;
};
Region region_after(int i, int bits, int parts) {
  const int pieces = 1 << bits;
  return {owned_region(i & (pieces - 1), pieces) * (parts / pieces), parts / pieces};
}

/// Round `bit` of every block that has it: member i sends its partner the half that the partner keeps
/// (halving), or all it has summed so far (doubling).
std::vector<Edge> exchange(const std::vector<Block>& blocks, int bit, int parts, OnReceive on_receive) {
  std::vector<Edge> edges;
  for (const Block& block : blocks) {
    for (int i = 0; i < block.size && (1 << bit) < block.size; ++i) {
      const int partner = i ^ (1 << bit);
      const Region sent = region_after(on_receive == OnReceive::reduce ? partner : i, bit + 1, parts);
      edges.push_back({block.first + i, block.first + partner, sent.chunk, sent.chunks, 0, 0});
    }
  }
  return edges;
}

/// Between a block and the next larger one: member j of the larger owns a part of what member j mod size
/// owns.
std::vector<Edge> between(const Block& large, const Block& small, int parts, OnReceive on_receive) {
  std::vector<Edge> edges;
  for (int j = 0; j < large.size; ++j) {
    const int i = j % small.size;
    const int chunk = owned_region(j, large.size) * (parts / large.size);
    const int lower = small.first + i, upper = large.first + j;
    const bool up = on_receive == OnReceive::reduce;
    edges.push_back({up ? lower : upper, up ? upper : lower, chunk, parts / large.size, 0, 0});
  }
  return edges;
}

}  // namespace

Schedule halving_doubling_all_reduce(const Group& group) {
  check_group(group);
  const auto blocks = binary_blocks(group.ranks);
  const int parts = blocks.front().size;
  const int bits = std::countr_zero(static_cast<unsigned>(parts));
  Schedule schedule{group.ranks, parts, {}};
  for (int bit = 0; bit < bits; ++bit) {
    schedule.phases.push_back(
        one_round(exchange(blocks, bit, parts, OnReceive::reduce), parts, OnReceive::reduce));
  }
  for (std::size_t b = blocks.size(); b-- > 1;) {
    schedule.phases.push_back(
        one_round(between(blocks[b - 1], blocks[b], parts, OnReceive::reduce), parts, OnReceive::reduce));
  }
  for (std::size_t b = 1; b < blocks.size(); ++b) {
    schedule.phases.push_back(
        one_round(between(blocks[b - 1], blocks[b], parts, OnReceive::copy), parts, OnReceive::copy));
  }
  for (int bit = bits; bit-- > 0;) {
    schedule.phases.push_back(
        one_round(exchange(blocks, bit, parts, OnReceive::copy), parts, OnReceive::copy));
  }
  return schedule;
}

Schedule recursive_doubling_all_reduce(const Group& group) {
  check_group(group);
  const int core = std::bit_floor(static_cast<unsigned>(group.ranks));
  Schedule schedule{group.ranks, 1, {}};
  std::vector<Edge> fold, unfold;
  for (int rank = core; rank < group.ranks; ++rank) {
    fold.push_back({rank, rank - core, 0, 1, 0, 0});
    unfold.push_back({rank - core, rank, 0, 1, 0, 0});
  }
  if (!fold.empty()) schedule.phases.push_back(one_round(fold, 1, OnReceive::reduce));
  for (int distance = 1; distance < core; distance <<= 1) {
    std::vector<Edge> edges;
    for (int rank = 0; rank < core; ++rank) edges.push_back({rank, rank ^ distance, 0, 1, 0, 0});
    schedule.phases.push_back(one_round(std::move(edges), 1, OnReceive::reduce));
  }
  if (!unfold.empty()) schedule.phases.push_back(one_round(unfold, 1, OnReceive::copy));
  return schedule;
}

}  // namespace stepcast
