#include "validate/capture_turns.hpp"

#include <algorithm>
#include <cmath>

#include "kernels/stopwatch.hpp"
#include "validate/core_distance.hpp"
#include "validate/repeats.hpp"

namespace stepcast {
namespace {

// A round over all networks takes a turn of each, so that the captures of one network lie as far apart as
// they can: what is near in time was captured at the same speed of the machine.
constexpr int kFewestRounds = 16, kMostPairs = 128;
constexpr double kCaptureSeconds = 40;  // of all rounds, about
// What another network leaves behind (in shared caches, in the clock of what joins cores to them) slows steps
// of 4 ms by 17 % at first, by 4 % after 25 ms: turns begin warm, as runs go on (docs/validation.md).
constexpr double kWarmSeconds = 0.1, kPairSeconds = 0.05;

/// How long a warm step takes on rank 0 [s]; the same on all.
double step_seconds(const RankRun& run, Capture& capture) {
  double seconds = 0;
  for (int warm = 0; warm < 2; ++warm) {
    barrier(run.transport);
    const Instant begin = now();
    capture.measure(0);
    seconds = now().wall - begin.wall;
  }
  return std::max(shared_value(run.transport, seconds), 1e-6);
}

/// As many rounds as fit into the time, by what a warm step of each network takes; each capture is told how
/// long to warm up. Where ranks sleep, they do so for what the trace says, whatever it says: few.
int plan_rounds(const RankRun& run, bool sleeping, std::vector<Turns>& all) {
  if (sleeping) return kFewestRounds;
  double round = 0;
  for (Turns& one : all) {
    const double step = step_seconds(run, *one.capture);
    const int warm_up = static_cast<int>(std::ceil(kWarmSeconds / step));
    one.capture->warm_up(warm_up);
    one.pairs = std::clamp(static_cast<int>(kPairSeconds / (2 * step)), 1, kMostPairs / kFewestRounds);
    round += (warm_up + 2 * one.pairs) * step;
  }
  return static_cast<int>(std::clamp(kCaptureSeconds / round, double{kFewestRounds}, double{kMostPairs}));
}

}  // namespace

void take_turns(const RankRun& run, MachineSpeed* speed, std::vector<Turns>& all) {
  const int rounds = plan_rounds(run, speed == nullptr, all);
  for (Turns& one : all) {
    one.pairs = std::clamp(kMostPairs / rounds, 1, one.pairs);
    if (one.capture != nullptr) one.capture->want(rounds * one.pairs);
  }
  for (int round = 0; round < rounds; ++round) {
    for (const Turns& one : all) {
      say(run.state, one.doing.c_str());
      if (run.transport.cores() != nullptr) run.transport.cores()->wait();
      if (speed != nullptr) speed->probe();
      barrier(run.transport);
      if (one.capture != nullptr) one.capture->measure(one.pairs);
    }
  }
  if (speed != nullptr) speed->set_pace();
}

}  // namespace stepcast
