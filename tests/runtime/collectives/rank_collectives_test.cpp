#include "runtime/collectives/rank_collectives.hpp"

#include <catch2/catch.hpp>
#include <deque>
#include <map>

#include "ranks.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast::library_collective_test {
namespace {

using Buffers = std::vector<std::vector<float>>;  // one for each rank

Plan plan_with(Collective::Kind kind, int groups, int size, std::int64_t elements) {
  Plan plan;
  Communicator communicator;
  communicator.size = size;
  for (int rank = 0; rank < groups * size; ++rank) communicator.ranks.emplace_back(rank);
  communicator.all_reduce.algorithm = Algorithm::ring;
  plan.communicators.push_back(communicator);
  Collective collective;
  collective.kind = kind;
  collective.buffer = {Array::gradients, {0, elements}, {4.0 * elements}};
  if (kind == Collective::Kind::exchange)
    collective.schedule = std::make_shared<const Schedule>(flat_reduce({size, 1}));
  plan.collectives.push_back(collective);
  return plan;
}

Buffers values(int ranks, std::int64_t elements) {
  Buffers buffers(ranks);
  for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
    for (std::int64_t i = 0; i < elements; ++i)
      buffers[rank].push_back(100 * (rank + 1) + static_cast<std::size_t>(i));
  }
  return buffers;
}

/// Executes the collective as ranks without the library do.
Buffers played(const Plan& plan, Buffers buffers) {
  run_ranks("memory", buffers.size(), [&](Transport& transport) {
    auto& own = buffers[transport.rank().index()];
    RankCollectives collectives(plan, {}, transport.rank());
    for (const auto& phase : collectives.phases(CollectiveId{0}, std::ssize(own)))
      execute_rounds(transport, phase, own.data());
  });
  return buffers;
}

/// The members of one group by library rank, with the call of each.
struct Member {
  LibraryCollective call;
  std::vector<float>* buffer = nullptr;
};

float sum_at(const std::map<int, Member>& group, std::int64_t i) {
  float sum = 0;
  for (const auto& [number, member] : group) sum += (*member.buffer)[i];
  return sum;
}

/// Executes rounds like ncclSend and ncclRecv in a group: matched in order for each pair, read before
/// written.
void exchange(std::map<int, Member>& group) {
  std::map<int, std::size_t> at;
  std::map<std::pair<int, int>, std::deque<std::vector<float>>> on_the_way;
  bool moved = true;
  while (moved) {
    moved = false;
    for (auto& [number, member] : group) {
      if (at[number] == member.call.rounds.size()) continue;
      for (const Transfer& transfer : member.call.rounds[at[number]]) {
        const auto from = member.buffer->begin();
        if (transfer.way == Transfer::Way::send)
          on_the_way[{number, transfer.peer}].emplace_back(from + transfer.slice.begin,
                                                           from + transfer.slice.end);
      }
    }
    for (auto& [number, member] : group) {
      if (at[number] == member.call.rounds.size()) continue;
      for (const Transfer& transfer : member.call.rounds[at[number]++]) {
        if (transfer.way == Transfer::Way::send) continue;
        auto& way = on_the_way[{transfer.peer, number}];
        REQUIRE_FALSE(way.empty());  // otherwise NCCL would hang
        REQUIRE(std::ssize(way.front()) == transfer.slice.size());
        for (std::size_t i = 0; i < way.front().size(); ++i) {
          float& target = (*member.buffer)[static_cast<std::size_t>(transfer.slice.begin) + i];
          target = transfer.on_receive == OnReceive::reduce ? target + way.front()[i] : way.front()[i];
        }
        way.pop_front();
      }
      moved = true;
    }
  }
  for (const auto& [pair, way] : on_the_way) CHECK(way.empty());
}

/// Executes the calls as NCCL's documentation describes them.
void carry_out(std::map<int, Member>& group) {
  const LibraryCollective& call = group.at(0).call;
  const auto copy = [&](int from, const Slice& slice) {
    const std::vector<float> source = *group.at(from).buffer;
    for (auto& [number, member] : group)
      std::copy(source.begin() + slice.begin, source.begin() + slice.end,
                member.buffer->begin() + slice.begin);
  };
  const auto sum_into = [&](int owner, const Slice& slice) {
    for (std::int64_t i = slice.begin; i < slice.end; ++i) (*group.at(owner).buffer)[i] = sum_at(group, i);
  };
  const Slice all{0, static_cast<std::int64_t>(group.at(0).buffer->size())};
  switch (call.kind) {
    case LibraryCollective::Kind::all_reduce:
      sum_into(0, all);
      return copy(0, all);
    case LibraryCollective::Kind::broadcast:
      return copy(call.root, all);
    case LibraryCollective::Kind::reduce:
      return sum_into(call.root, all);
    case LibraryCollective::Kind::reduce_scatter:
      for (const LibraryCollective::Part& part : call.parts) sum_into(part.owner, part.slice);
      return;
    case LibraryCollective::Kind::all_gather:
      for (const LibraryCollective::Part& part : call.parts) copy(part.owner, part.slice);
      return;
    case LibraryCollective::Kind::exchange:
      return exchange(group);
  }
}

Buffers asked_of_library(const Plan& plan, Buffers buffers) {
  const Communicator& communicator = plan.communicators.front();
  for (int group = 0; group < communicator.groups(); ++group) {
    std::map<int, Member> members;
    for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
      const GroupPlace place = place_in_group(communicator, RankId(rank));
      if (place.group != group) continue;
      RankCollectives collectives(plan, {}, RankId(rank));
      const std::int64_t elements = buffers[rank].size();
      members[place.number] = {library_collective(plan, CollectiveId{0}, RankId(rank), elements,
                                                  collectives.phases(CollectiveId{0}, elements)),
                               &buffers[rank]};
    }
    REQUIRE(std::ssize(members) == communicator.size);
    carry_out(members);
  }
  return buffers;
}

}  // namespace

TEST_CASE("a library executes each collective of a plan with the same result as the plan's schedules",
          "[validate][collectives]") {
  using Kind = Collective::Kind;
  const Kind kind = GENERATE(Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::broadcast,
                             Kind::reduce, Kind::all_to_all, Kind::exchange);
  const int groups = GENERATE(1, 2), size = GENERATE(2, 3, 4);
  const std::int64_t elements = GENERATE(48, 37, 2);
  CAPTURE(ordinal(kind), groups, size, elements);
  const Plan plan = plan_with(kind, groups, size, elements);
  const Buffers before = values(groups * size, elements);
  const Buffers expected = played(plan, before), got = asked_of_library(plan, before);
  const auto schedule = ring_reduce_scatter({size, 1});
  for (std::size_t rank = 0; rank < before.size(); ++rank) {
    CAPTURE(rank);
    const int place = static_cast<int>(rank) % size;
    if (kind == Kind::reduce_scatter) {  // only its own part is defined
      for (const Slice& part : slices_after_reduce_scatter(schedule, place, elements)) {
        for (std::size_t i = part.begin; i < static_cast<std::size_t>(part.end); ++i)
          CHECK(got[rank][i] == expected[rank][i]);
      }
    } else if (kind != Kind::reduce || place == 0) {
      CHECK(got[rank] == expected[rank]);
    }
  }
}

TEST_CASE("a library's own reduce-scatter and all-gather are used if the parts are even",
          "[validate][collectives]") {
  const auto call = [](std::int64_t elements, int size) {
    const Plan plan = plan_with(Collective::Kind::reduce_scatter, 1, size, elements);
    return library_collective(plan, CollectiveId{0}, RankId{0}, elements, {});
  };
  CHECK(call(48, 4).even);
  CHECK_FALSE(call(49, 4).even);
  CHECK(call(9, 3).even);
  CHECK_FALSE(call(2, 3).even);
}

}  // namespace stepcast::library_collective_test
