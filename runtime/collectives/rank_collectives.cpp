#include "runtime/collectives/rank_collectives.hpp"

#include <algorithm>
#include <stdexcept>

#include "strategies/plan/communicator.hpp"

namespace stepcast {
namespace {

void add_transfer(Round& round, Transfer::Way way, int peer, const Slice& words) {
  if (words.size() == 0) return;
  round.push_back({.way = way, .peer = peer, .slice = words, .arrival = Arrival::replace, .after = {}});
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
  return found == communicator.ranks.end() ? -1 : static_cast<int>(found - communicator.ranks.begin());
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
  const int part = (place_in(one) / one.size + 1) % one.groups();
  return {part_begin(elements, one.groups(), part), part_begin(elements, one.groups(), part + 1)};
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
      for (Transfer& transfer : round)
        transfer.peer = communicator.ranks[static_cast<std::size_t>(first + transfer.peer)].value;
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

}  // namespace stepcast
