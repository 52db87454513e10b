#include "runtime/collectives/library_collective.hpp"

#include <algorithm>

#include "runtime/collectives/rank_collectives.hpp"
#include "strategies/plan/communicator.hpp"

namespace stepcast {
namespace {

/// Library rank of the rank at a place of a group (LibraryCollective).
int number_of(int place, int size) {
  return (place + 1) % size;
}

LibraryCollective::Kind kind_of(Collective::Kind kind) {
  switch (kind) {
    case Collective::Kind::all_reduce:
      return LibraryCollective::Kind::all_reduce;
    case Collective::Kind::reduce_scatter:
      return LibraryCollective::Kind::reduce_scatter;
    case Collective::Kind::all_gather:
      return LibraryCollective::Kind::all_gather;
    case Collective::Kind::broadcast:
      return LibraryCollective::Kind::broadcast;
    case Collective::Kind::reduce:
      return LibraryCollective::Kind::reduce;
    case Collective::Kind::all_to_all:
    case Collective::Kind::exchange:
      break;
  }
  return LibraryCollective::Kind::exchange;
}

/// The parts that a reduce-scatter leaves at the ranks, and that an all-gather begins with.
std::vector<LibraryCollective::Part> parts_of(const Communicator& communicator, std::int64_t elements) {
  Collective scatter;
  scatter.kind = Collective::Kind::reduce_scatter;
  const auto schedule =
      schedule_of(scatter, communicator.all_reduce, {communicator.size, communicator.ranks_per_node});
  std::vector<LibraryCollective::Part> parts;
  for (int place = 0; place < communicator.size; ++place) {
    for (const Slice& slice : slices_after_reduce_scatter(*schedule, place, elements)) {
      if (slice.size() > 0) parts.push_back({number_of(place, communicator.size), slice});
    }
  }
  return parts;
}

bool are_even(const std::vector<LibraryCollective::Part>& parts, int size, std::int64_t elements) {
  const std::int64_t each = elements / size;
  return std::ranges::all_of(parts, [&](const LibraryCollective::Part& part) {
    return part.slice.begin == part.owner * each && part.slice.size() == each;
  });
}

}  // namespace

GroupPlace place_in_group(const Communicator& communicator, RankId rank) {
  const auto found = std::ranges::find(communicator.ranks, rank);
  if (found == communicator.ranks.end()) return {0, -1};
  const int place = static_cast<int>(found - communicator.ranks.begin());
  return {place / communicator.size, number_of(place % communicator.size, communicator.size)};
}

std::vector<int> ranks_of_group(const Communicator& communicator, RankId rank) {
  const GroupPlace place = place_in_group(communicator, rank);
  if (place.number < 0) return {};
  const auto first = communicator.ranks.begin() + place.group * communicator.size;
  std::vector<int> ranks;
  std::transform(first, first + communicator.size, std::back_inserter(ranks),
                 [](RankId one) { return one.value; });
  return ranks;
}

LibraryCollective library_collective(const Plan& plan, CollectiveId id, RankId rank, std::int64_t elements,
                                     const std::vector<std::vector<Round>>& rounds) {
  const Collective& collective = plan.collectives.at(id.index());
  const Communicator& communicator = communicator_of(plan, collective);
  LibraryCollective call{.kind = kind_of(collective.kind), .root = number_of(0, communicator.size)};
  if (call.kind == LibraryCollective::Kind::reduce_scatter ||
      call.kind == LibraryCollective::Kind::all_gather) {
    call.parts = parts_of(communicator, elements);
    call.even = are_even(call.parts, communicator.size, elements);
  }
  if (call.kind != LibraryCollective::Kind::exchange) return call;
  const int group = place_in_group(communicator, rank).group;
  for (const std::vector<Round>& phase : rounds) {
    for (const Round& round : phase) {
      call.rounds.push_back(round);
      for (Transfer& transfer : call.rounds.back()) {
        const auto place =
            std::ranges::find(communicator.ranks, RankId(transfer.peer)) - communicator.ranks.begin();
        transfer.peer = number_of(static_cast<int>(place) - group * communicator.size, communicator.size);
      }
    }
  }
  return call;
}

}  // namespace stepcast
