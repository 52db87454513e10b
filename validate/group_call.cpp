#include "validate/group_call.hpp"

#include <algorithm>

#include "strategies/planned_schedule.hpp"
#include "validate/real_collectives.hpp"

namespace stepcast {
namespace {

int number_of(int place, int size) {
  return (place + 1) % size;
}

GroupCall::Kind kind_of(Collective::Kind kind) {
  switch (kind) {
    case Collective::Kind::all_reduce:
      return GroupCall::Kind::all_reduce;
    case Collective::Kind::reduce_scatter:
      return GroupCall::Kind::reduce_scatter;
    case Collective::Kind::all_gather:
      return GroupCall::Kind::all_gather;
    case Collective::Kind::broadcast:
      return GroupCall::Kind::broadcast;
    case Collective::Kind::reduce:
      return GroupCall::Kind::reduce;
    case Collective::Kind::all_to_all:
    case Collective::Kind::exchange:
      break;
  }
  return GroupCall::Kind::exchange;
}

/// As reduce-scatters leave them; all-gathers find them so.
std::vector<GroupCall::Part> parts_of(const Communicator& communicator, std::int64_t elements) {
  Collective scatter;
  scatter.kind = Collective::Kind::reduce_scatter;
  const auto schedule =
      schedule_of(scatter, communicator.all_reduce, {communicator.size, communicator.ranks_per_node});
  std::vector<GroupCall::Part> parts;
  for (int place = 0; place < communicator.size; ++place) {
    for (const Slice& slice : parts_after_scatter(*schedule, place, elements)) {
      if (slice.size() > 0) parts.push_back({number_of(place, communicator.size), slice});
    }
  }
  return parts;
}

bool are_even(const std::vector<GroupCall::Part>& parts, int size, std::int64_t elements) {
  const std::int64_t each = elements / size;
  return std::ranges::all_of(parts, [&](const GroupCall::Part& part) {
    return part.slice.begin == part.owner * each && part.slice.size() == each;
  });
}

}  // namespace

GroupPlace place_in_group(const Communicator& communicator, int rank) {
  const auto found = std::ranges::find(communicator.ranks, rank);
  if (found == communicator.ranks.end()) return {0, -1};
  const int place = static_cast<int>(found - communicator.ranks.begin());
  return {place / communicator.size, number_of(place % communicator.size, communicator.size)};
}

GroupCall group_call(const Plan& plan, int index, int rank, std::int64_t elements,
                     const std::vector<std::vector<Round>>& rounds) {
  const Collective& collective = plan.collectives.at(static_cast<std::size_t>(index));
  const Communicator& communicator = plan.communicators.at(static_cast<std::size_t>(collective.communicator));
  GroupCall call{.kind = kind_of(collective.kind), .root = number_of(0, communicator.size)};
  if (call.kind == GroupCall::Kind::reduce_scatter || call.kind == GroupCall::Kind::all_gather) {
    call.parts = parts_of(communicator, elements);
    call.even = are_even(call.parts, communicator.size, elements);
  }
  if (call.kind != GroupCall::Kind::exchange) return call;
  const int group = place_in_group(communicator, rank).group;
  for (const std::vector<Round>& phase : rounds) {
    for (const Round& round : phase) {
      call.rounds.push_back(round);
      for (Move& move : call.rounds.back()) {
        const auto place = std::ranges::find(communicator.ranks, move.peer) - communicator.ranks.begin();
        move.peer = number_of(static_cast<int>(place) - group * communicator.size, communicator.size);
      }
    }
  }
  return call;
}

}  // namespace stepcast
