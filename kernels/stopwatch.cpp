#include "kernels/stopwatch.hpp"

#include <time.h>

#include <algorithm>
#include <array>

namespace stepcast {
namespace {

double seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

Instant now() {
  return {seconds(CLOCK_MONOTONIC), seconds(CLOCK_PROCESS_CPUTIME_ID)};
}

Instant cost_of_now() {
  std::array<double, 1001> wall{}, cpu{};
  Instant last = now();
  for (std::size_t i = 0; i < wall.size(); ++i) {
    const Instant next = now();
    wall[i] = next.wall - last.wall;
    cpu[i] = next.cpu - last.cpu;
    last = next;
  }
  const auto middle = wall.size() / 2;
  std::nth_element(wall.begin(), wall.begin() + middle, wall.end());
  std::nth_element(cpu.begin(), cpu.begin() + middle, cpu.end());
  return {wall[middle], cpu[middle]};
}

}  // namespace stepcast
