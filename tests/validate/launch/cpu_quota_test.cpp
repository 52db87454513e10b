#include "validate/launch/cpu_quota.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <memory>

#include "core/error.hpp"
#include "kernels/timing/step_timer.hpp"

namespace stepcast {
namespace {

/// Groups, or null where this system does not let this user make them. Then the error says so.
std::unique_ptr<CpuQuotas> quotas(int ranks, double share) {
  try {
    return std::make_unique<CpuQuotas>(ranks, share);
  } catch (const InputError& error) {
    CHECK_THAT(error.what(), Catch::StartsWith("--cpu-quota: expected "));
    WARN(error.what());
    return nullptr;
  }
}

/// Percent of a core that a child process gets that joins the group of a rank and never waits.
int percent_of_core(const CpuQuotas& quotas, int rank) {
  const pid_t child = fork();
  if (child == 0) {
    join_cpu_quota(quotas.folder(), rank);
    const Instant begin = now();
    Instant end = begin;
    while (end.wall - begin.wall < 0.3) end = now();
    _exit(std::lround(100 * (end.cpu - begin.cpu) / (end.wall - begin.wall)));
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

}  // namespace

TEST_CASE("a rank with a quota gets no more of a core, and its group is removed afterwards",
          "[validate][launch]") {
  std::filesystem::path folder;
  {
    const auto half = quotas(2, 0.5);
    if (half == nullptr) return;
    folder = half->folder();
    CHECK(std::filesystem::exists(folder / "rank-1"));
    const int percent = percent_of_core(*half, 1);
    CHECK(percent > 0);
    CHECK(percent <= 55);  // less where other programs use the core
  }
  CHECK_FALSE(std::filesystem::exists(folder));
}

TEST_CASE("a process cannot join a group that does not exist", "[validate][launch][errors]") {
  CHECK_THROWS_WITH(join_cpu_quota("/nowhere", 0),
                    Catch::StartsWith("the control group of a rank: /nowhere/rank-0/"));
}

}  // namespace stepcast
