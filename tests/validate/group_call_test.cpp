#include "validate/group_call.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <deque>
#include <map>

#include "ranks.hpp"
#include "strategies/collectives/algorithms.hpp"
#include "validate/real_collectives.hpp"

namespace stepcast {
namespace {

const LinkTable kLinks{{1e-6}, {1e9}, {{{INFINITY}, {0}, 1}}};
using Buffers = std::vector<std::vector<float>>;  // of each rank

Plan plan_with(Collective::Kind kind, int groups, int size, std::int64_t elements) {
  Plan plan;
  Communicator communicator;
  communicator.size = size;
  for (int rank = 0; rank < groups * size; ++rank) communicator.ranks.push_back(rank);
  communicator.all_reduce.algorithm = Algorithm::ring;
  plan.communicators.push_back(communicator);
  Collective collective;
  collective.kind = kind;
  collective.buffer = {Array::gradients, {0, elements}, {4.0 * static_cast<double>(elements)}};
  if (kind == Collective::Kind::exchange)
    collective.schedule = std::make_shared<const Schedule>(flat_reduce({size, 1}));
  plan.collectives.push_back(collective);
  return plan;
}

Buffers values(int ranks, std::int64_t elements) {
  Buffers buffers(static_cast<std::size_t>(ranks));
  for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
    for (std::int64_t i = 0; i < elements; ++i)
      buffers[rank].push_back(static_cast<float>(100 * (rank + 1) + static_cast<std::size_t>(i)));
  }
  return buffers;
}

/// As ranks without the library play it.
Buffers played(const Plan& plan, Buffers buffers) {
  run_ranks("memory", static_cast<int>(buffers.size()), [&](Transport& transport) {
    auto& own = buffers[static_cast<std::size_t>(transport.rank())];
    RealCollectives collectives(plan, kLinks, transport.rank());
    for (const auto& phase : collectives.phases(0, static_cast<std::int64_t>(own.size())))
      play(transport, phase, own.data());
  });
  return buffers;
}

/// One group's members by the library's number, with what each asks for.
struct Member {
  GroupCall call;
  std::vector<float>* buffer = nullptr;
};

float sum_at(const std::map<int, Member>& group, std::int64_t i) {
  float sum = 0;
  for (const auto& [number, member] : group) sum += (*member.buffer)[static_cast<std::size_t>(i)];
  return sum;
}

/// Rounds as ncclSend and ncclRecv in a group make them: matched in order for each pair, read before written.
void exchange(std::map<int, Member>& group) {
  std::map<int, std::size_t> at;
  std::map<std::pair<int, int>, std::deque<std::vector<float>>> on_the_way;
  bool moved = true;
  while (moved) {
    moved = false;
    for (auto& [number, member] : group) {
      if (at[number] == member.call.rounds.size()) continue;
      for (const Move& move : member.call.rounds[at[number]]) {
        const auto from = member.buffer->begin();
        if (move.way == Move::Way::send)
          on_the_way[{number, move.peer}].emplace_back(from + move.slice.begin, from + move.slice.end);
      }
    }
    for (auto& [number, member] : group) {
      if (at[number] == member.call.rounds.size()) continue;
      for (const Move& move : member.call.rounds[at[number]++]) {
        if (move.way == Move::Way::send) continue;
        auto& way = on_the_way[{move.peer, number}];
        REQUIRE_FALSE(way.empty());  // else the real thing would hang
        REQUIRE(static_cast<std::int64_t>(way.front().size()) == move.slice.size());
        for (std::size_t i = 0; i < way.front().size(); ++i) {
          float& target = (*member.buffer)[static_cast<std::size_t>(move.slice.begin) + i];
          target = move.arrival == Arrival::add ? target + way.front()[i] : way.front()[i];
        }
        way.pop_front();
      }
      moved = true;
    }
  }
  for (const auto& [pair, way] : on_the_way) CHECK(way.empty());
}

/// What NCCL's documentation says that the calls do.
void carry_out(std::map<int, Member>& group) {
  const GroupCall& call = group.at(0).call;
  const auto copy = [&](int from, const Slice& slice) {
    const std::vector<float> source = *group.at(from).buffer;
    for (auto& [number, member] : group)
      std::copy(source.begin() + slice.begin, source.begin() + slice.end,
                member.buffer->begin() + slice.begin);
  };
  const auto sum_into = [&](int owner, const Slice& slice) {
    for (std::int64_t i = slice.begin; i < slice.end; ++i)
      (*group.at(owner).buffer)[static_cast<std::size_t>(i)] = sum_at(group, i);
  };
  const Slice all{0, static_cast<std::int64_t>(group.at(0).buffer->size())};
  switch (call.kind) {
    case GroupCall::Kind::all_reduce:
      sum_into(0, all);
      return copy(0, all);
    case GroupCall::Kind::broadcast:
      return copy(call.root, all);
    case GroupCall::Kind::reduce:
      return sum_into(call.root, all);
    case GroupCall::Kind::reduce_scatter:
      for (const GroupCall::Part& part : call.parts) sum_into(part.owner, part.slice);
      return;
    case GroupCall::Kind::all_gather:
      for (const GroupCall::Part& part : call.parts) copy(part.owner, part.slice);
      return;
    case GroupCall::Kind::exchange:
      return exchange(group);
  }
}

Buffers asked_of_library(const Plan& plan, Buffers buffers) {
  const Communicator& communicator = plan.communicators.front();
  for (int group = 0; group < communicator.groups(); ++group) {
    std::map<int, Member> members;
    for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
      const GroupPlace place = place_in_group(communicator, static_cast<int>(rank));
      if (place.group != group) continue;
      RealCollectives collectives(plan, kLinks, static_cast<int>(rank));
      const auto elements = static_cast<std::int64_t>(buffers[rank].size());
      members[place.number] = {
          group_call(plan, 0, static_cast<int>(rank), elements, collectives.phases(0, elements)),
          &buffers[rank]};
    }
    REQUIRE(static_cast<int>(members.size()) == communicator.size);
    carry_out(members);
  }
  return buffers;
}

}  // namespace

TEST_CASE("what a library of collectives is asked for leaves what the plan's schedules leave",
          "[validate][collectives]") {
  using Kind = Collective::Kind;
  const Kind kind = GENERATE(Kind::all_reduce, Kind::reduce_scatter, Kind::all_gather, Kind::broadcast,
                             Kind::reduce, Kind::all_to_all, Kind::exchange);
  const int groups = GENERATE(1, 2), size = GENERATE(2, 3, 4);
  const std::int64_t elements = GENERATE(48, 37, 2);
  CAPTURE(static_cast<int>(kind), groups, size, elements);
  const Plan plan = plan_with(kind, groups, size, elements);
  const Buffers before = values(groups * size, elements);
  const Buffers expected = played(plan, before), got = asked_of_library(plan, before);
  const auto schedule = ring_reduce_scatter({size, 1});
  for (std::size_t rank = 0; rank < before.size(); ++rank) {
    CAPTURE(rank);
    const int place = static_cast<int>(rank) % size;
    if (kind == Kind::reduce_scatter) {  // only its own part means anything
      for (const Slice& part : parts_after_scatter(schedule, place, elements)) {
        for (auto i = static_cast<std::size_t>(part.begin); i < static_cast<std::size_t>(part.end); ++i)
          CHECK(got[rank][i] == expected[rank][i]);
      }
    } else if (kind != Kind::reduce || place == 0) {
      CHECK(got[rank] == expected[rank]);
    }
  }
}

TEST_CASE("a library's own cut is used where parts are even", "[validate][collectives]") {
  const auto call = [](std::int64_t elements, int size) {
    const Plan plan = plan_with(Collective::Kind::reduce_scatter, 1, size, elements);
    return group_call(plan, 0, 0, elements, {});
  };
  CHECK(call(48, 4).even);
  CHECK_FALSE(call(49, 4).even);
  CHECK(call(9, 3).even);
  CHECK_FALSE(call(2, 3).even);
}

}  // namespace stepcast
