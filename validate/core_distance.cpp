#include "validate/core_distance.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "kernels/stopwatch.hpp"
#include "report/statistics.hpp"
#include "validate/repeats.hpp"

namespace stepcast {
namespace {

constexpr int kTurns = 20, kBatches = 4;
constexpr double kPause = 0.02;     // seconds between two looks
constexpr double kLongestWait = 5;  // seconds
constexpr double kAlike = 1.5;      // times as far, or as near

void pause() {
  std::this_thread::sleep_for(std::chrono::duration<double>(kPause));
}

}  // namespace

double CoreDistance::round_trip() {
  const int ranks = transport_.ranks(), rank = transport_.rank();
  const int next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;
  float token = 0;
  double least = 1e9;
  barrier(transport_);
  for (int batch = 0; batch < kBatches; ++batch) {
    const Instant begin = now();
    for (int turn = 0; turn < kTurns; ++turn) {
      if (rank == 0) send(transport_, next, &token, 1);
      receive(transport_, before, &token, 1);
      if (rank != 0) send(transport_, next, &token, 1);
    }
    least = std::min(least, (now().wall - begin.wall) / kTurns);
  }
  return shared_value(transport_, least);
}

void CoreDistance::settle(double seconds) {
  std::vector<double> looks;
  for (double left = seconds; left > 0; left -= kPause) {
    looks.push_back(round_trip());
    pause();
  }
  settled_ = median_of(looks);
}

bool CoreDistance::is_settled(double round_trip) const {
  return round_trip < settled_ * kAlike && round_trip > settled_ / kAlike;
}

bool CoreDistance::is_settled() {
  return is_settled(round_trip());
}

bool CoreDistance::wait() {
  for (double waited = 0; !is_settled(); waited += kPause) {
    if (waited >= std::min(kLongestWait, patience_)) {
      patience_ = std::max(0.0, patience_ - waited);
      return false;
    }
    pause();
  }
  return true;
}

}  // namespace stepcast
