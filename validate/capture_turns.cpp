#include "validate/capture_turns.hpp"

#include <algorithm>

#include "kernels/stopwatch.hpp"
#include "validate/core_distance.hpp"
#include "validate/repeats.hpp"

namespace stepcast {
namespace {

// A round over all networks takes one pair of steps of each, so that the captures of one network lie as far
// apart as they can: what is near in time was captured at the same speed of the machine.
constexpr int kFewestRounds = 16, kMostRounds = 128;
constexpr double kCaptureSeconds = 40;  // of all rounds, about
constexpr int kStepsOfTurn = 3;         // a warm-up and a pair

/// As many as fit into the time, by what a warm step of every network takes.
int rounds_for(const RankRun& run, bool sleeping, std::vector<Turns>& all) {
  double seconds = 0;
  for (int warm = 0; warm < 2; ++warm) {
    barrier(run.transport);
    const Instant begin = now();
    for (const Turns& one : all) {
      if (one.capture != nullptr) one.capture->measure(0);
    }
    seconds = now().wall - begin.wall;
  }
  // Ranks that sleep do so for what the trace says, whatever it says.
  const double fit = sleeping ? 0 : kCaptureSeconds / (kStepsOfTurn * std::max(seconds, 1e-6));
  const int rounds = static_cast<int>(
      std::clamp(shared_value(run.transport, fit), double{kFewestRounds}, double{kMostRounds}));
  for (const Turns& one : all) {
    if (one.capture != nullptr) one.capture->want(rounds);
  }
  return rounds;
}

}  // namespace

void take_turns(const RankRun& run, MachineSpeed* speed, std::vector<Turns>& all) {
  const int rounds = rounds_for(run, speed == nullptr, all);
  for (int round = 0; round < rounds; ++round) {
    for (const Turns& one : all) {
      say(run.state, one.doing.c_str());
      if (run.transport.cores() != nullptr) run.transport.cores()->wait();
      if (speed != nullptr) speed->probe();
      barrier(run.transport);
      if (one.capture != nullptr) one.capture->measure(1);
    }
  }
  if (speed != nullptr) speed->set_pace();
}

}  // namespace stepcast
