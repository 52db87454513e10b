// Checks the transport over MPI and MPI's all-reduce on whole numbers, whose sums are exact. mpirun starts
// it: see tests/validate/CMakeLists.txt.

#include <fmt/format.h>
#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/p2p/point_to_point.hpp"
#include "runtime/transport/shared_memory_transport.hpp"
#include "strategies/collectives/algorithm_choice.hpp"
#include "validate/cpu_rank/mpi_transport.hpp"

namespace {

using namespace stepcast;

/// The value of element `i` on a rank; sums over ranks stay exact in floats.
float value(int rank, std::size_t i) {
  return (static_cast<std::size_t>(rank) + 1) * (i % 97 + 1);
}

std::vector<float> values_of(int rank, std::int64_t elements) {
  std::vector<float> values(elements);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = value(rank, i);
  return values;
}

int wrong_sums(const std::vector<float>& sums, const std::vector<RankId>& ranks) {
  int wrong = 0;
  for (std::size_t i = 0; i < sums.size(); ++i) {
    float right = 0;
    for (const RankId rank : ranks) right += value(rank.value, i);
    if (sums[i] != right) ++wrong;
  }
  return wrong;
}

/// All-reduces of every algorithm at sizes around a segment of the transport.
int check_all_reduces(Transport& transport, const std::vector<RankId>& all) {
  int wrong = 0;
  for (const Algorithm algorithm :
       {Algorithm::ring, Algorithm::halving_doubling, Algorithm::recursive_doubling, Algorithm::binomial_tree,
        Algorithm::double_tree}) {
    for (const std::int64_t elements : {1, 7, 15360, 15361, 300001}) {
      std::vector<float> values = values_of(transport.rank().value, elements);
      const auto schedule =
          all_reduce_schedule({.algorithm = algorithm}, {transport.ranks(), 1}, Bytes{4.0 * elements});
      execute_rounds(transport, rounds_of(*schedule, transport.rank().value, elements), values.data());
      wrong += wrong_sums(values, all);
    }
  }
  return wrong;
}

int check_library(const std::vector<RankId>& all, int rank) {
  MpiAllReduce sum;
  int wrong = 0;
  std::vector<float> values = values_of(rank, 1000);
  sum(values, all);
  wrong += wrong_sums(values, all);
  const std::vector<RankId> half(
      all.begin() + (rank < static_cast<int>(all.size() / 2) ? 0 : all.size() / 2),
      rank < static_cast<int>(all.size() / 2) ? all.begin() + all.size() / 2 : all.end());
  for (int repeat = 0; repeat < 2; ++repeat) {
    values = values_of(rank, 1000);
    sum(values, half);
    wrong += wrong_sums(values, half);
  }
  return wrong;
}

/// Every rank sends a message to every other one, and receives those of all.
int check_messages(Transport& transport, Transport& collectives) {
  CompletionQueue completions;
  PointToPoint messages(transport);
  messages.begin_run(1, completions);
  const int ranks = transport.ranks();
  const std::int64_t floats = 100003;
  std::vector<std::vector<float>> received(ranks);
  for (int peer = 0; peer < ranks; ++peer) {
    if (RankId(peer) == transport.rank()) continue;
    auto& memory = received[peer];
    memory.resize(floats);
    messages.receive(MessageTag{7}, RoleId{peer}, std::make_shared<Operation>(),
                     [&memory](const Buffer&) { return std::span<float>(memory); });
  }
  const std::vector<float> own = values_of(transport.rank().value, floats);
  for (int peer = 0; peer < ranks; ++peer) {
    if (RankId(peer) == transport.rank()) continue;
    Message message;
    message.tag = MessageTag{7};
    message.from = RoleId{transport.rank().value};
    messages.send(RankId(peer), message, own, std::make_shared<Operation>());
  }
  for (int left = 2 * (ranks - 1); left > 0;) {
    if (completions.next()) --left;
  }
  barrier(collectives);  // until then `messages` acknowledges what others have sent
  messages.end_run();
  int wrong = 0;
  for (int peer = 0; peer < ranks; ++peer) {
    if (RankId(peer) != transport.rank() && received[peer] != values_of(peer, floats)) ++wrong;
  }
  return wrong;
}

/// `wait` returns at once when another thread wakes it, and after a second without anything.
int check_wake(Transport& transport) {
  const auto seconds_of = [&](bool wakes) {
    const auto begin = std::chrono::steady_clock::now();
    std::thread waker([&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (wakes) transport.wake();
    });
    transport.wait({}, {transport.rank_after(1)});
    waker.join();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  return (seconds_of(true) < 0.8 ? 0 : 1) + (seconds_of(false) > 0.9 ? 0 : 1);
}

/// Memory of wake flags that all ranks share, all of them zero.
void* shared_wake_flags(int rank, int ranks) {
  const auto bytes = static_cast<MPI_Aint>(rank == 0 ? WakeFlags::bytes_for(ranks) + 64 : 0);
  void* memory = nullptr;
  MPI_Win window = MPI_WIN_NULL;
  MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &window);
  MPI_Aint size = 0;
  int unit = 0;
  MPI_Win_shared_query(window, 0, &size, &unit, &memory);
  // The same distance to a multiple of 64 on all ranks, because windows are mapped in whole pages.
  auto* const start = reinterpret_cast<char*>((reinterpret_cast<std::uintptr_t>(memory) + 63) / 64 * 64);
  if (rank == 0) std::fill_n(start, WakeFlags::bytes_for(ranks), 0);
  MPI_Barrier(MPI_COMM_WORLD);
  return start;
}

}  // namespace

int main() {
  int provided = 0, rank = 0, ranks = 0;
  MPI_Init_thread(nullptr, nullptr, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  std::vector<RankId> all;
  for (int peer = 0; peer < ranks; ++peer) all.emplace_back(peer);
  int wrong = 0;
  for (const bool shares_memory : {false, true}) {
    const auto flags = [&] { return shares_memory ? shared_wake_flags(rank, ranks) : nullptr; };
    const auto transport = mpi_transport({.wake_flags = flags()}),
               messages = mpi_transport({.spin_seconds = 20e-6, .wake_flags = flags()});
    const int wakes = check_wake(*transport);
    barrier(*transport);
    const int sums = check_all_reduces(*transport, all), library = check_library(all, rank),
              sent = check_messages(*messages, *transport);
    wrong += sums + library + sent + wakes;
    if (wrong > 0)
      fmt::print(stderr, "rank {}: {} wrong sums, {} of MPI, {} wrong messages, {} wrong waits\n", rank, sums,
                 library, sent, wakes);
    barrier(*transport);
  }
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
