#include <catch2/catch.hpp>
#include <chrono>
#include <numeric>
#include <thread>

#include "core/error.hpp"
#include "gpu/nccl_link.hpp"
#include "pretended_nccl.hpp"

// Groups and links of NCCL among ranks that are threads, on an NCCL that is pretended: what is asked of it,
// in what order, on what memory, and what becomes of ranks that fail. What the library answers, it cannot
// show.
namespace stepcast::test {
namespace {

using Values = std::vector<float>;

/// 1, 2, 3, ... times a power of ten for each rank, so that sums tell who is in them.
Values values_of(int rank, std::size_t count) {
  Values values(count);
  std::iota(values.begin(), values.end(), 1.F);
  for (float& value : values)
    for (int k = 0; k < rank; ++k) value *= 100;
  return values;
}

/// What each rank has in memory after a call that all make.
std::vector<Values> after(int ranks, std::size_t count, const std::function<GroupCall(int)>& call) {
  std::vector<Values> memory;
  for (int rank = 0; rank < ranks; ++rank) memory.push_back(values_of(rank, count));
  const std::string id = nccl_unique_id();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto group = join_nccl({.rank = rank, .number = rank, .size = ranks}, id);
      group->run(call(rank), memory[static_cast<std::size_t>(rank)].data(), static_cast<std::int64_t>(count),
                 nullptr);
    });
  }
  threads.clear();
  return memory;
}

std::vector<Values> after(int ranks, std::size_t count, const GroupCall& call) {
  return after(ranks, count, [&](int) { return call; });
}

constexpr float kSum = 1 + 100 + 10000;  // of three ranks, times the element's number

/// What it is lost with.
std::string loss(const std::function<void()>& run) {
  try {
    run();
  } catch (const RankLost& error) {
    return error.what();
  }
  return "";
}

/// Of a rank that waits for one which joined and then fails.
std::string loss_beside_failure() {
  const std::string id = nccl_unique_id();
  const std::jthread other([&] { loss([&] { join_nccl({.rank = 1, .number = 1, .size = 2}, id); }); });
  const auto group = join_nccl({.rank = 0, .number = 0, .size = 2}, id);
  const std::jthread fails([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    pretended::break_groups();
  });
  Values memory(4);
  return loss([&] { group->run({.kind = GroupCall::Kind::all_reduce}, memory.data(), 4, nullptr); });
}

}  // namespace

TEST_CASE("sums and broadcasts and reduces of a group are everybody's or the root's", "[pretended]") {
  for (const Values& one : after(3, 5, GroupCall{.kind = GroupCall::Kind::all_reduce}))
    CHECK(one == Values{kSum, 2 * kSum, 3 * kSum, 4 * kSum, 5 * kSum});
  for (const Values& one : after(3, 2, GroupCall{.kind = GroupCall::Kind::broadcast, .root = 1}))
    CHECK(one == Values{100, 200});
  const auto reduced = after(3, 2, GroupCall{.kind = GroupCall::Kind::reduce, .root = 2});
  CHECK(reduced[0] == Values{1, 2});
  CHECK(reduced[2] == Values{kSum, 2 * kSum});
}

TEST_CASE("parts of a sum lie with their owners and are gathered from there", "[pretended]") {
  const bool even = GENERATE(true, false);
  const std::int64_t first = even ? 2 : 1;  // elements of the first two parts, the third has the rest
  GroupCall call{.kind = GroupCall::Kind::reduce_scatter,
                 .parts = {{0, {0, first}}, {1, {first, 2 * first}}, {2, {2 * first, 6}}},
                 .even = even};
  const auto scattered = after(3, 6, call);
  CHECK(scattered[0][0] == kSum);
  CHECK(scattered[1][static_cast<std::size_t>(first)] == static_cast<float>(first + 1) * kSum);
  CHECK(scattered[2][5] == 6 * kSum);
  call.kind = GroupCall::Kind::all_gather;
  for (const Values& one : after(3, 6, call)) {
    CHECK(one[0] == 1);
    CHECK(one[static_cast<std::size_t>(first)] == 100 * static_cast<float>(first + 1));
    CHECK(one[5] == 60000);
  }
}

TEST_CASE("a round of an exchange sends what was there before it", "[pretended]") {
  const auto all = after(3, 4, [](int rank) {
    GroupCall call{.kind = GroupCall::Kind::exchange};
    call.rounds = {{{.way = Move::Way::send, .peer = (rank + 1) % 3, .slice = {0, 2}, .after = {}},
                    {.way = Move::Way::receive, .peer = (rank + 2) % 3, .slice = {0, 2}, .after = {}}},
                   {{.way = Move::Way::send, .peer = (rank + 1) % 3, .slice = {0, 2}, .after = {}},
                    {.way = Move::Way::receive,
                     .peer = (rank + 2) % 3,
                     .slice = {2, 4},
                     .arrival = Arrival::replace,
                     .after = {}}}};
    return call;
  });
  CHECK(all[0] == Values{10001, 20002, 10100, 20200});  // of itself and 2; then of 1 and 2, from 2
  CHECK(all[1] == Values{101, 202, 10001, 20002});
  CHECK(all[2] == Values{10100, 20200, 101, 202});
}

TEST_CASE("a link carries messages one way and in order", "[pretended]") {
  const std::string id = nccl_unique_id();
  Values sent = values_of(0, 6), got(6);
  {
    const std::jthread sender([&] {
      const auto link = join_nccl_link({.rank = 0, .number = 0, .size = 2, .most_blocks = 8}, id);
      link->send(sent.data(), 2, nullptr);
      link->send(sent.data() + 2, 4, nullptr);
    });
    const auto link = join_nccl_link({.rank = 1, .number = 1, .size = 2, .most_blocks = 8}, id);
    link->receive(got.data(), 2, nullptr);
    link->receive(got.data() + 2, 4, nullptr);
  }
  CHECK(got == sent);
}

TEST_CASE("a rank whose others do not come says so and is lost", "[pretended][errors]") {
  int beats = 0;
  const NcclEnd end{.rank = 4, .number = 1, .size = 2, .patience = 0.1, .beat = [&] { ++beats; }};
  CHECK(loss([&] { join_nccl(end, nccl_unique_id()); }) ==
        "rank 4 on cuda:0: NCCL gave up during joining the group: the others did not come within 0.1 s");
  CHECK(beats > 0);  // whoever watches this rank knows that it waits
}

TEST_CASE("a rank that waits for one that failed is lost with NCCL's words", "[pretended][errors]") {
  for (int i = 0; i < 20; ++i) {  // the failure comes at any moment between two looks
    const std::string words = loss_beside_failure();
    CHECK_THAT(words, Catch::StartsWith("rank 0 on cuda:0: NCCL gave up during an all-reduce: ") &&
                          Catch::EndsWith("an error of the pretended NCCL"));
  }
}

}  // namespace stepcast::test
