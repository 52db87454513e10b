#include "validate/launch/core_shares.hpp"

#include <sched.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <memory>
#include <thread>

#include "core/error.hpp"
#include "kernels/timing/step_timer.hpp"

namespace stepcast {
namespace {

constexpr double kSeconds = 0.3;

/// Shares, or null where this system does not let this user share cores. Then the error says so.
std::unique_ptr<CoreShares> shares(int ranks) {
  try {
    return std::make_unique<CoreShares>(ranks);
  } catch (const InputError& error) {
    CHECK_THAT(error.what(), Catch::StartsWith("--share-cores: expected "));
    WARN(error.what());
    return nullptr;
  }
}

/// What a process got that never waited.
struct Got {
  double share;  ///< of the core
  int stops;     ///< times that it stood still for more than 50 us
};

double thread_seconds() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

Got compute() {
  const double begin = now().wall, used = thread_seconds();
  int stops = 0;
  double last = begin;
  while (last < begin + kSeconds) {
    const double next = now().wall;
    stops += next - last > 5e-5 ? 1 : 0;
    last = next;
  }
  return {(thread_seconds() - used) / (last - begin), stops};
}

/// Starts a process that is rank `rank` on the first core that it may use, and that computes or waits.
pid_t start(const CoreShares& shares, int rank, Got* got) {
  const pid_t child = fork();
  if (child != 0) return child;
  cpu_set_t allowed, one;
  sched_getaffinity(0, sizeof allowed, &allowed);
  CPU_ZERO(&one);
  int core = 0;
  while (!CPU_ISSET(core, &allowed)) ++core;
  CPU_SET(core, &one);
  sched_setaffinity(0, sizeof one, &one);
  join_core_share(shares.folder(), rank);
  {
    const std::jthread filler = take_turns([] {});
    if (got == nullptr)
      std::this_thread::sleep_for(std::chrono::duration<double>(2 * kSeconds));
    else
      *got = compute();
  }
  _exit(0);
}

}  // namespace

TEST_CASE("a rank that shares a core takes short turns, whether the other computes or waits",
          "[validate][launch]") {
  void* const memory =
      mmap(nullptr, 2 * sizeof(Got), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  REQUIRE(memory != MAP_FAILED);
  Got* const got = static_cast<Got*>(memory);
  std::filesystem::path folder;
  for (const bool other_computes : {true, false}) {
    CAPTURE(other_computes);
    {
      const auto half = shares(2);
      if (half == nullptr) return;
      folder = half->folder();
      // A process that is forked while the timers' threads begin may find the sanitizers' allocator locked
      // for ever.
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      const pid_t ranks[] = {start(*half, 0, &got[0]), start(*half, 1, other_computes ? &got[1] : nullptr)};
      for (const pid_t rank : ranks) waitpid(rank, nullptr, 0);
    }
    CHECK_FALSE(std::filesystem::exists(folder));
    // Less where other programs use the core. The scheduler's own timer would end 40 to 150 turns.
    CHECK(got[0].share > 0.1);
    CHECK(got[0].share < 0.56);
    CHECK(got[0].stops > 200);
  }
  munmap(memory, 2 * sizeof(Got));
}

TEST_CASE("a process cannot join a group that does not exist", "[validate][launch][errors]") {
  CHECK_THROWS_WITH(join_core_share("/nowhere", 0),
                    Catch::StartsWith("the control group of a rank: /nowhere/rank-0/"));
}

}  // namespace stepcast
