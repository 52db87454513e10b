#include "runtime/transport/shared_memory_transport.hpp"

#include <algorithm>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstdlib>
#include <memory>
#include <thread>

namespace stepcast {
namespace {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

std::unique_ptr<void, Free> flags_of(int ranks) {
  const std::size_t bytes = WakeFlags::bytes_for(ranks);
  std::unique_ptr<void, Free> memory(std::aligned_alloc(64, bytes));
  std::fill_n(static_cast<char*>(memory.get()), bytes, 0);
  return memory;
}

}  // namespace

TEST_CASE("two ranks that wake each other in turn never sleep to the end", "[validate][transport]") {
  const auto memory = flags_of(2);
  std::atomic<int> turn = 0;
  std::atomic<int> missed = 0;
  const auto play = [&](int rank) {
    WakeFlags flags(memory.get(), RankId(rank));
    for (int i = rank; i < 2000; i += 2) {
      while (turn.load() != i) missed += flags.sleep([&] { return turn.load() == i; }, 20) ? 0 : 1;
      turn.store(i + 1);
      flags.wake_sleeping(RankId(1 - rank));
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  CHECK(turn == 2000);
  CHECK(missed == 0);
}

TEST_CASE("a wake-up before the sleep ends the next sleep, and only that", "[validate][transport]") {
  const auto memory = flags_of(1);
  WakeFlags flags(memory.get(), RankId{0});
  flags.wake();
  CHECK(flags.is_wake_requested());
  CHECK(flags.sleep([] { return false; }, 60));
  CHECK_FALSE(flags.is_wake_requested());
  CHECK_FALSE(flags.sleep([] { return false; }, 0.01));
  CHECK_FALSE(flags.is_sleeping());
}

}  // namespace stepcast
