#include "validate/real_collectives.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "platforms/topology.hpp"
#include "strategies/planned_schedule.hpp"
#include "validate/owner_sums.hpp"
#include "validate/schedule_time.hpp"

namespace stepcast {
namespace {

/// -1: not among them.
int place_of(const Communicator& communicator, int rank) {
  const auto found = std::find(communicator.ranks.begin(), communicator.ranks.end(), rank);
  return found == communicator.ranks.end() ? -1 : static_cast<int>(found - communicator.ranks.begin());
}

}  // namespace

LinkTable link_table_of(const Platform& platform, const std::vector<int>& endpoints) {
  if (endpoints.size() < 2) return {{1e-6}, {1e9}, {{{INFINITY}, {0}, 1}}};
  const Topology topology(platform);
  std::vector<int> route;
  topology.route(endpoints[0], endpoints[1], route);
  BytesPerSecond least{INFINITY};
  for (const int link : route) least = std::min(least, topology.link(link).bandwidth);
  const bool local = platform.node_of(endpoints[0]) == platform.node_of(endpoints[1]);
  return {topology.route_latency(endpoints[0], endpoints[1]), least,
          local ? platform.local_message_costs : platform.message_costs};
}

std::shared_ptr<const Schedule> RealCollectives::schedule(const Collective& collective,
                                                          const Communicator& communicator) const {
  const Group group{communicator.size, communicator.ranks_per_node};
  const AllReduceChoice& asked = communicator.all_reduce;
  if (collective.kind != Collective::Kind::all_reduce || asked.algorithm != Algorithm::automatic) {
    return schedule_of(collective, asked, group);
  }
  std::shared_ptr<const Schedule> best;
  double least = INFINITY;
  for (const AllReduceChoice& choice : candidates(asked, group)) {
    const auto one = schedule_of(collective, choice, group);
    const double seconds = schedule_time(*one, links_, collective.buffer.size).value;
    if (seconds >= least) continue;
    least = seconds;
    best = one;
  }
  return best;
}

int RealCollectives::place_in(const Communicator& communicator) const {
  const int place = place_of(communicator, rank_);
  if (place < 0) throw std::logic_error("a rank called a collective that it is not in");
  return place;
}

Slice RealCollectives::part(int index, std::int64_t elements) const {
  const Collective& collective = plan_.collectives.at(static_cast<std::size_t>(index));
  if (!collective.by_group) return {0, elements};
  const Communicator& one = plan_.communicators.at(static_cast<std::size_t>(collective.communicator));
  const int part = (place_in(one) / one.size + 1) % one.groups();
  return {part_begin(elements, one.groups(), part), part_begin(elements, one.groups(), part + 1)};
}

std::vector<std::vector<Round>> RealCollectives::rounds_in_group(const Collective& collective,
                                                                 const Communicator& communicator, int place,
                                                                 std::int64_t elements) const {
  const Codec& codec = collective.buffer.codec;
  if (codec.kind != Compression::none)
    return owner_sums(WireLayout(codec, elements), codec.kind, communicator.size, place);
  std::vector<std::vector<Round>> phases;
  const auto whole = schedule(collective, communicator);
  for (const Phase& phase : whole->phases)
    phases.push_back(rounds_of({whole->ranks, whole->parts, {phase}}, place, elements));
  return phases;
}

const std::vector<std::vector<Round>>& RealCollectives::phases(int index, std::int64_t elements) {
  const auto [known, is_new] = known_.try_emplace({index, elements});
  if (!is_new) return known->second;
  const Collective& collective = plan_.collectives.at(static_cast<std::size_t>(index));
  const Communicator& communicator =
      plan_.communicators.at(static_cast<std::size_t>(collective.communicator));
  const int place = place_in(communicator);
  const int first = place / communicator.size * communicator.size;
  if (communicator.size == 1) return known->second;
  known->second = rounds_in_group(collective, communicator, place - first, elements);
  for (std::vector<Round>& phase : known->second) {
    for (Round& round : phase) {
      for (Move& move : round) move.peer = communicator.ranks[static_cast<std::size_t>(first + move.peer)];
    }
  }
  return known->second;
}

std::vector<Slice> parts_after_scatter(const Schedule& schedule, int place, std::int64_t elements) {
  std::vector<Slice> parts;
  const Phase& last = schedule.phases.back();
  for (const Edge& edge : *last.edges) {
    if (edge.target == place) parts.push_back(slice_of(schedule, last, edge, last.active - 1, elements));
  }
  return parts;
}

std::vector<Slice> scattered_parts(const Plan& plan, int rank, const ArrayMap& map, LayerRange layers) {
  std::vector<Slice> parts;
  for (const Collective& collective : plan.collectives) {
    if (collective.kind != Collective::Kind::reduce_scatter || collective.buffer.array != Array::gradients)
      continue;
    if (collective.layer >= 0 && (collective.layer < layers.first || collective.layer >= layers.last))
      continue;
    const Communicator& one = plan.communicators.at(static_cast<std::size_t>(collective.communicator));
    const auto schedule = schedule_of(collective, one.all_reduce, {one.size, one.ranks_per_node});
    const Slice buffer = map.stored(collective.buffer.elements);
    const int place = place_of(one, rank);
    if (place < 0) continue;
    for (const Slice& slice : parts_after_scatter(*schedule, place % one.size, buffer.size()))
      parts.push_back({buffer.begin + slice.begin, buffer.begin + slice.end});
  }
  return parts;
}

}  // namespace stepcast
