#include "validate/owner_sums.hpp"

namespace stepcast {
namespace {

void add_move(Round& round, Move::Way way, int peer, const Slice& words) {
  if (words.size() == 0) return;
  round.push_back({.way = way, .peer = peer, .slice = words, .arrival = Arrival::replace, .after = {}});
}

std::vector<Round> to_owners(const WireLayout& layout, int ranks, int rank) {
  std::vector<Round> rounds;
  for (int distance = 1; distance < ranks; ++distance) {
    const int to = (rank + distance) % ranks, from = (rank - distance + ranks) % ranks;
    Round round;
    add_move(round, Move::Way::send, to, layout.share(to));
    add_move(round, Move::Way::receive, from, layout.arrived(from, rank));
    rounds.push_back(std::move(round));
  }
  return rounds;
}

std::vector<Round> gathered_shares(const WireLayout& layout, int ranks, int rank) {
  std::vector<Round> rounds;
  for (int step = 0; step + 1 < ranks; ++step) {
    const int mine = (rank - step + ranks) % ranks, next = (mine - 1 + ranks) % ranks;
    Round round;
    add_move(round, Move::Way::send, (rank + 1) % ranks, layout.share(mine));
    add_move(round, Move::Way::receive, (rank - 1 + ranks) % ranks, layout.share(next));
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace

std::vector<std::vector<Round>> owner_sums(const WireLayout& layout, Compression kind, int ranks, int rank) {
  if (kind == Compression::top_k) return {gathered_shares(layout, ranks, rank)};
  return {to_owners(layout, ranks, rank), gathered_shares(layout, ranks, rank)};
}

}  // namespace stepcast
