#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <numeric>
#include <thread>

#include "core/error.hpp"
#include "fake_cuda.hpp"
#include "fake_nccl.hpp"
#include "fake_streams.hpp"
#include "gpu/nccl/nccl_backend.hpp"
#include "kernels/cudnn/cuda/handles.hpp"
#include "kernels/cudnn/runtime/device.hpp"
#include "runtime/rendezvous/store.hpp"
#include "tests/report/temporary_folder.hpp"

// Tests of NCCL groups and links with a fake NCCL, among ranks that are threads: the calls, their order and
// memory, and failures of ranks. They do not show how the real library behaves.
namespace stepcast::test {
namespace {

using Values = std::vector<float>;

/// The numbers 1, 2, 3, ... times a power of ten for each rank, so that sums show which ranks contributed.
Values values_of(int rank, std::size_t count) {
  Values values(count);
  std::iota(values.begin(), values.end(), 1.F);
  for (float& value : values)
    for (int k = 0; k < rank; ++k) value *= 100;
  return values;
}

/// A rank with a GPU of its own in a group.
NcclRank member(int rank, int ranks, double timeout = 30) {
  fake::device_count() = 8;
  return {.device = rank, .rank = rank, .group_rank = rank, .group_size = ranks, .timeout = timeout};
}

/// The memory of each rank after a call that all ranks make.
std::vector<Values> after(int ranks, std::size_t count, const std::function<LibraryCollective(int)>& call) {
  std::vector<Values> memory;
  for (int rank = 0; rank < ranks; ++rank) memory.push_back(values_of(rank, count));
  const std::string id = nccl_unique_id();
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      const auto group = join_nccl(member(rank, ranks), id);
      group->run(call(rank), memory[rank].data(), count, nullptr);
    });
  }
  threads.clear();
  return memory;
}

std::vector<Values> after(int ranks, std::size_t count, const LibraryCollective& call) {
  return after(ranks, count, [&](int) { return call; });
}

constexpr float kSum = 1 + 100 + 10000;  // sum of three ranks' first elements

/// The message of the RankLost that a call throws.
std::string loss(const std::function<void()>& run) {
  try {
    run();
  } catch (const RankLost& error) {
    return error.what();
  }
  return "";
}

/// The message on a rank that waits for another rank, which joined and then fails.
std::string loss_beside_failure() {
  const std::string id = nccl_unique_id();
  const std::jthread other([&] { loss([&] { join_nccl(member(1, 2), id); }); });
  const auto group = join_nccl(member(0, 2), id);
  const std::jthread fails([] {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    fake::break_groups();
  });
  Values memory(4);
  return loss([&] { group->run({.kind = LibraryCollective::Kind::all_reduce}, memory.data(), 4, nullptr); });
}

}  // namespace

TEST_CASE("all-reduce and broadcast give the result to all ranks, reduce to the root", "[fake]") {
  for (const Values& one : after(3, 5, LibraryCollective{.kind = LibraryCollective::Kind::all_reduce}))
    CHECK(one == Values{kSum, 2 * kSum, 3 * kSum, 4 * kSum, 5 * kSum});
  for (const Values& one :
       after(3, 2, LibraryCollective{.kind = LibraryCollective::Kind::broadcast, .root = 1}))
    CHECK(one == Values{100, 200});
  const auto reduced = after(3, 2, LibraryCollective{.kind = LibraryCollective::Kind::reduce, .root = 2});
  CHECK(reduced[0] == Values{1, 2});
  CHECK(reduced[2] == Values{kSum, 2 * kSum});
}

TEST_CASE("reduce-scatter leaves each part with its owner, and all-gather collects the parts", "[fake]") {
  const bool even = GENERATE(true, false);
  const std::int64_t first = even ? 2 : 1;  // elements of each of the first two parts; the third has the rest
  LibraryCollective call{.kind = LibraryCollective::Kind::reduce_scatter,
                         .parts = {{0, {0, first}}, {1, {first, 2 * first}}, {2, {2 * first, 6}}},
                         .even = even};
  const auto scattered = after(3, 6, call);
  CHECK(scattered[0][0] == kSum);
  CHECK(scattered[1][first] == static_cast<float>(first + 1) * kSum);
  CHECK(scattered[2][5] == 6 * kSum);
  call.kind = LibraryCollective::Kind::all_gather;
  for (const Values& one : after(3, 6, call)) {
    CHECK(one[0] == 1);
    CHECK(one[first] == 100 * static_cast<float>(first + 1));
    CHECK(one[5] == 60000);
  }
}

TEST_CASE("a round of an exchange sends the values before the round", "[fake]") {
  const auto all = after(3, 4, [](int rank) {
    LibraryCollective call{.kind = LibraryCollective::Kind::exchange};
    call.rounds = {{{.way = Transfer::Way::send, .peer = (rank + 1) % 3, .slice = {0, 2}, .after = {}},
                    {.way = Transfer::Way::receive, .peer = (rank + 2) % 3, .slice = {0, 2}, .after = {}}},
                   {{.way = Transfer::Way::send, .peer = (rank + 1) % 3, .slice = {0, 2}, .after = {}},
                    {.way = Transfer::Way::receive,
                     .peer = (rank + 2) % 3,
                     .slice = {2, 4},
                     .on_receive = OnReceive::copy,
                     .after = {}}}};
    return call;
  });
  CHECK(all[0] ==
        Values{10001, 20002, 10100,
               20200});  // the sum with rank 2's, then the sum of ranks 1 and 2, received from rank 2
  CHECK(all[1] == Values{101, 202, 10001, 20002});
  CHECK(all[2] == Values{10100, 20200, 101, 202});
}

TEST_CASE("memory for the largest round of an exchange is there before any rank waits for another",
          "[fake]") {
  constexpr std::int64_t kLargest = 1000;  // [floats]; the first round receives one
  std::atomic<int> waits = 0, without_memory = 0;
  fake::behaviour() = {};
  fake::behaviour().on_call = [&](const fake::Op& op) {
    if (op.kind != fake::Op::Kind::send || op.count != 1) return;
    ++waits;
    if (fake::allocations_of(kLargest * sizeof(float)) == 0) ++without_memory;
  };
  after(2, kLargest, [](int rank) {
    const auto exchanged = [rank](std::int64_t floats) -> Round {
      return {{.way = Transfer::Way::send, .peer = 1 - rank, .slice = {0, floats}, .after = {}},
              {.way = Transfer::Way::receive, .peer = 1 - rank, .slice = {0, floats}, .after = {}}};
    };
    LibraryCollective call{.kind = LibraryCollective::Kind::exchange};
    call.rounds = {exchanged(1), exchanged(kLargest)};
    return call;
  });
  CHECK(waits == 2);
  CHECK(without_memory == 0);
  fake::behaviour() = {};
}

TEST_CASE("a link carries messages in one direction and in order", "[fake]") {
  const std::string id = nccl_unique_id();
  Values sent = values_of(0, 6), got(6);
  {
    const std::jthread sender([&] {
      const auto link = join_nccl_link(member(0, 2), id);
      link->send(sent.data(), 2, nullptr);
      link->send(sent.data() + 2, 4, nullptr);
    });
    const auto link = join_nccl_link(member(1, 2), id);
    link->receive(got.data(), 2, nullptr);
    link->receive(got.data() + 2, 4, nullptr);
  }
  CHECK(got == sent);
}

TEST_CASE("a call that NCCL launches later is waited for", "[fake]") {
  fake::behaviour() = {.answers_in_progress = 5};
  for (const Values& one : after(3, 2, LibraryCollective{.kind = LibraryCollective::Kind::all_reduce}))
    CHECK(one == Values{kSum, 2 * kSum});
  fake::behaviour() = {};
}

TEST_CASE("a call that fails within a group of calls ends the group before it aborts", "[fake][errors]") {
  // The first operation of each rank connects it; the third of the two ranks' is the first of the group.
  fake::behaviour() = {.fails_at = 2};
  std::vector<std::string> words(2);
  const std::string id = nccl_unique_id();
  std::vector<Values> memory(2, Values(4));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      words[rank] = loss([&] {
        const auto group = join_nccl(member(rank, 2, 2), id);
        LibraryCollective call{.kind = LibraryCollective::Kind::exchange};
        call.rounds = {{{.way = Transfer::Way::send, .peer = 1 - rank, .slice = {0, 2}, .after = {}},
                        {.way = Transfer::Way::receive, .peer = 1 - rank, .slice = {2, 4}, .after = {}}}};
        group->run(call, memory[rank].data(), 4, nullptr);
      });
    });
  }
  threads.clear();
  CHECK(fake::behaviour().aborts == 2);
  CHECK(fake::behaviour().aborts_in_group == 0);
  // The other rank may still be waiting for its connection when the communicator is aborted.
  for (const std::string& one : words) CHECK_THAT(one, Catch::Contains("NCCL gave up during "));
  CHECK((words[0] + words[1]).find("NCCL gave up during an exchange: ncclSend: ") != std::string::npos);
  fake::behaviour() = {};
}

TEST_CASE("a group that gave up gives the same cause for what is called afterwards", "[fake][errors]") {
  fake::behaviour() = {};
  const std::string id = nccl_unique_id();
  std::jthread other([&] { join_nccl(member(1, 2), id); });
  const auto group = join_nccl(member(0, 2), id);
  other.join();  // or one of its calls fails
  fake::fail_next_call();
  Values memory(4);
  const auto run = [&] {
    group->run({.kind = LibraryCollective::Kind::all_reduce}, memory.data(), 4, nullptr);
  };
  const std::string first = loss(run);
  CHECK_THAT(first,
             Catch::StartsWith("rank 0 on cuda:0: NCCL gave up during an all-reduce: ncclAllReduce: "));
  CHECK(loss(run) == first);
  fake::behaviour() = {};
}

TEST_CASE("ranks of a group and of a link are connected when they have joined", "[fake]") {
  fake::behaviour() = {};
  const std::string id = nccl_unique_id();
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 2; ++rank) threads.emplace_back([&, rank] { join_nccl(member(rank, 2), id); });
  }
  CHECK(fake::behaviour().calls == 2);
}

TEST_CASE("a rank that waits too long for other ranks reports it and ends", "[fake][errors]") {
  int beats = 0;
  const NcclRank self{
      .rank = 4, .group_rank = 1, .group_size = 2, .timeout = 0.1, .on_wait = [&] { ++beats; }};
  CHECK(loss([&] { join_nccl(self, nccl_unique_id()); }) ==
        "rank 4 on cuda:0: NCCL gave up during joining the group: no progress within 0.1 s: another rank is "
        "missing or stuck");
  CHECK(beats > 0);  // the callback was called during the wait
}

TEST_CASE("a rank that waits for a failed one ends with NCCL's error message", "[fake][errors]") {
  for (int i = 0; i < 20; ++i) {  // the failure may come at any moment between two polls
    const std::string words = loss_beside_failure();
    CHECK_THAT(words, Catch::StartsWith("rank 0 on cuda:0: NCCL gave up during an all-reduce: ") &&
                          Catch::EndsWith("an error of the fake NCCL"));
  }
}

TEST_CASE("a rank that waits in a collective for a rank that never comes gives up in time",
          "[fake][errors]") {
  const std::string id = nccl_unique_id();
  std::string words;
  {
    const std::jthread other([&] { join_nccl(member(1, 2), id); });  // joins, connects and leaves
    const auto group = join_nccl(member(0, 2, 0.2), id);
    Values memory(4);
    words =
        loss([&] { group->run({.kind = LibraryCollective::Kind::all_reduce}, memory.data(), 4, nullptr); });
  }
  CHECK(words ==
        "rank 0 on cuda:0: NCCL gave up during an all-reduce: no progress within 0.2 s: another rank is "
        "missing "
        "or stuck");
}

TEST_CASE("ranks that call different collectives end with an error", "[fake][errors]") {
  using Kind = LibraryCollective::Kind;
  const std::string id = nccl_unique_id();
  std::vector<std::string> words(2);
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto group = join_nccl(member(rank, 2, 5), id);
      Values memory(4);
      words[rank] = loss([&] {
        group->run({.kind = rank == 0 ? Kind::all_reduce : Kind::broadcast}, memory.data(), 4, nullptr);
      });
    });
  }
  threads.clear();
  for (const std::string& one : words) CHECK_THAT(one, Catch::EndsWith("an error of the fake NCCL"));
}

TEST_CASE("a collective begins when the device's work before its event is done", "[fake]") {
  const std::string id = nccl_unique_id();
  std::vector<Values> memory(2, Values(4));
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < 2; ++rank) {
    threads.emplace_back([&, rank] {
      const auto group = join_nccl(member(rank, 2), id);
      Values& own = memory[rank];
      const cudnn::Stream stream = cudnn::make_stream();
      for (int i = 0; i < 20; ++i) {
        fake::enqueue(stream.get(), [&own, i] { std::ranges::fill(own, static_cast<float>(i)); });
        cudaEvent_t event = nullptr;
        cudaEventCreate(&event);
        const DeviceMemory::Event event_of_work(
            event, [](void* one) { cudaEventDestroy(static_cast<cudaEvent_t>(one)); });
        cudaEventRecord(event, stream.get());
        group->run({.kind = LibraryCollective::Kind::all_reduce}, own.data(), 4, event_of_work);
        CHECK(own == Values(4, 2.F * static_cast<float>(i)));
      }
    });
  }
}

TEST_CASE("a collective and the links of a server fit on a GPU at once", "[fake]") {
  const TemporaryFolder folder;
  fake::behaviour() = {};
  fake::device_count() = 8;
  const auto rank = [&](int number) {
    Store store(folder.path(), number, 10);
    NcclBackend backend(store, {.device = number, .rank = number});
    backend.group_of({0, 1});
    backend.link(RankId(0), RankId(1));
  };
  {
    const std::jthread other([&] { rank(1); });
    rank(0);
  }
  const std::vector<int> blocks = fake::behaviour().blocks;
  CHECK(blocks == std::vector<int>{16, 16, 8, 8});
  CHECK(blocks[0] + 14 * blocks[2] <= 132);  // a server of 7 workers on an H100
}

}  // namespace stepcast::test
