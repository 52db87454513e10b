#include "runtime/collectives/rank_collectives.hpp"

#include <algorithm>
#include <stdexcept>

#include "strategies/plan/plan.hpp"

namespace stepcast {

namespace {

void add_transfer(Round& round, Transfer::Way way, int peer, const Slice& words) {
  if (words.size() == 0) return;
  round.push_back({.way = way, .peer = peer, .slice = words, .on_receive = OnReceive::copy, .after = {}});
}

std::vector<Round> to_owners(const WireLayout& layout, int ranks, int position) {
  std::vector<Round> rounds;
  for (int distance = 1; distance < ranks; ++distance) {
    const int to = (position + distance) % ranks, from = (position - distance + ranks) % ranks;
    Round round;
    add_transfer(round, Transfer::Way::send, to, layout.share(to));
    add_transfer(round, Transfer::Way::receive, from, layout.arrived(from, position));
    rounds.push_back(std::move(round));
  }
  return rounds;
}

std::vector<Round> gathered_shares(const WireLayout& layout, int ranks, int position) {
  std::vector<Round> rounds;
  for (int step = 0; step + 1 < ranks; ++step) {
    const int mine = (position - step + ranks) % ranks, next = (mine - 1 + ranks) % ranks;
    Round round;
    add_transfer(round, Transfer::Way::send, (position + 1) % ranks, layout.share(mine));
    add_transfer(round, Transfer::Way::receive, (position - 1 + ranks) % ranks, layout.share(next));
    rounds.push_back(std::move(round));
  }
  return rounds;
}

}  // namespace

std::vector<std::vector<Round>> compressed_all_reduce_rounds(const WireLayout& layout, Compression kind,
                                                             int ranks, int position) {
  if (kind == Compression::top_k) return {gathered_shares(layout, ranks, position)};
  return {to_owners(layout, ranks, position), gathered_shares(layout, ranks, position)};
}

namespace {

/// Index of a rank among the ranks of a communicator; -1: it is not one of them.
int place_of(const Communicator& communicator, RankId rank) {
  const auto found = std::find(communicator.ranks.begin(), communicator.ranks.end(), rank);
  return found == communicator.ranks.end() ? -1 : (found - communicator.ranks.begin());
}

}  // namespace

std::shared_ptr<const Schedule> RankCollectives::schedule(CollectiveId id,
                                                          const Communicator& communicator) const {
  const Collective& collective = plan_.collectives.at(id.index());
  const auto chosen = choices_.find(id);
  if (chosen == choices_.end() && has_automatic_algorithm(plan_, collective))
    throw std::logic_error("no algorithm was chosen for an all-reduce with all_reduce: automatic");
  return schedule_of(collective, chosen == choices_.end() ? communicator.all_reduce : chosen->second,
                     {communicator.size, communicator.ranks_per_node});
}

int RankCollectives::place_in(const Communicator& communicator) const {
  const int place = place_of(communicator, rank_);
  if (place < 0)
    throw std::logic_error("rank " + std::to_string(rank_.value) +
                           " is not in the collective's communicator");
  return place;
}

Slice RankCollectives::owned_slice(CollectiveId id, std::int64_t elements) const {
  const Collective& collective = plan_.collectives.at(id.index());
  if (!collective.by_group) return {0, elements};
  const Communicator& one = communicator_of(plan_, collective);
  const int parts = one.groups() / collective.groups_of_share;
  const int part = (place_in(one) / one.size / collective.groups_of_share + 1) % parts;
  return {part_begin(elements, parts, part), part_begin(elements, parts, part + 1)};
}

std::vector<std::vector<Round>> RankCollectives::rounds_in_group(CollectiveId id,
                                                                 const Communicator& communicator, int place,
                                                                 std::int64_t elements) const {
  const Codec& codec = plan_.collectives.at(id.index()).buffer.codec;
  if (codec.kind != Compression::none)
    return compressed_all_reduce_rounds(WireLayout(codec, elements), codec.kind, communicator.size, place);
  std::vector<std::vector<Round>> phases;
  const auto whole = schedule(id, communicator);
  for (const Phase& phase : whole->phases)
    phases.push_back(rounds_of({whole->ranks, whole->parts, {phase}}, place, elements));
  return phases;
}

const std::vector<std::vector<Round>>& RankCollectives::phases(CollectiveId id, std::int64_t elements) {
  const auto [known, is_new] = known_.try_emplace({id, elements});
  if (!is_new) return known->second;
  const Collective& collective = plan_.collectives.at(id.index());
  const Communicator& communicator = communicator_of(plan_, collective);
  const int place = place_in(communicator);
  const int first = place / communicator.size * communicator.size;
  const bool undecided = collective.kind == Collective::Kind::all_reduce &&
                         communicator.all_reduce.algorithm == Algorithm::automatic;
  if (communicator.size == 1 || (undecided && collective.buffer.size.value == 0)) return known->second;
  known->second = rounds_in_group(id, communicator, place - first, elements);
  for (std::vector<Round>& phase : known->second) {
    for (Round& round : phase) {
      for (Transfer& transfer : round) transfer.peer = communicator.ranks[first + transfer.peer].value;
    }
  }
  return known->second;
}

std::vector<Slice> slices_after_reduce_scatter(const Schedule& schedule, int place, std::int64_t elements) {
  std::vector<Slice> parts;
  const Phase& last = schedule.phases.back();
  for (const Edge& edge : *last.edges) {
    if (edge.target == place) parts.push_back(slice_of(schedule, last, edge, last.active - 1, elements));
  }
  return parts;
}

std::vector<Slice> reduce_scattered_slices(const Plan& plan, RankId rank, const ParameterLayout& map,
                                           LayerRange layers) {
  std::vector<Slice> parts;
  for (const Collective& collective : plan.collectives) {
    if (collective.kind != Collective::Kind::reduce_scatter || collective.buffer.array != Array::gradients)
      continue;
    if (collective.layer >= 0 && (collective.layer < layers.first || collective.layer >= layers.last))
      continue;
    const Communicator& one = communicator_of(plan, collective);
    const auto schedule = schedule_of(collective, one.all_reduce, {one.size, one.ranks_per_node});
    const Slice buffer = map.stored(collective.buffer.elements);
    const int place = place_of(one, rank);
    if (place < 0) continue;
    for (const Slice& slice : slices_after_reduce_scatter(*schedule, place % one.size, buffer.size()))
      parts.push_back({buffer.begin + slice.begin, buffer.begin + slice.end});
  }
  return parts;
}

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
  const int place = found - communicator.ranks.begin();
  return {place / communicator.size, number_of(place % communicator.size, communicator.size)};
}

std::vector<RankId> ranks_of_group(const Communicator& communicator, RankId rank) {
  const GroupPlace place = place_in_group(communicator, rank);
  if (place.number < 0) return {};
  const auto first = communicator.ranks.begin() + std::ptrdiff_t{place.group} * communicator.size;
  return {first, first + communicator.size};
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
  const std::ptrdiff_t group = place_in_group(communicator, rank).group;
  for (const std::vector<Round>& phase : rounds) {
    for (const Round& round : phase) {
      call.rounds.push_back(round);
      for (Transfer& transfer : call.rounds.back()) {
        const auto place =
            std::ranges::find(communicator.ranks, RankId(transfer.peer)) - communicator.ranks.begin();
        transfer.peer = number_of(place - group * communicator.size, communicator.size);
      }
    }
  }
  return call;
}

}  // namespace stepcast
