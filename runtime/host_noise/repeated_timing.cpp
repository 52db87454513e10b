#include "runtime/host_noise/repeated_timing.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "kernels/timing/host_info.hpp"
#include "kernels/timing/step_timer.hpp"
#include "report/statistics/statistics.hpp"
#include "runtime/transport/transport.hpp"

namespace stepcast {

namespace {

constexpr int kRoundTrips = 20, kBatches = 4;
constexpr double kPause = 0.02;     // seconds between two samples
constexpr double kLongestWait = 5;  // seconds
constexpr double kTolerance = 1.5;  // factor between a latency and the baseline

void pause() {
  std::this_thread::sleep_for(std::chrono::duration<double>(kPause));
}

}  // namespace

double CoreToCoreLatency::round_trip() {
  const RankId next = transport_.rank_after(1), before = transport_.rank_after(-1);
  float token = 0;
  double least = 1e9;
  barrier(transport_);
  for (int batch = 0; batch < kBatches; ++batch) {
    const Instant begin = now();
    for (int trip = 0; trip < kRoundTrips; ++trip) {
      if (transport_.is_rank_0()) send(transport_, next, &token, 1);
      receive(transport_, before, &token, 1);
      if (!transport_.is_rank_0()) send(transport_, next, &token, 1);
    }
    least = std::min(least, (now().wall - begin.wall) / kRoundTrips);
  }
  return broadcast_from_rank_0(transport_, least);
}

void CoreToCoreLatency::set_baseline(double seconds) {
  std::vector<double> samples;
  for (double left = seconds; left > 0; left -= kPause) {
    samples.push_back(round_trip());
    pause();
  }
  baseline_ = median_of(samples);
}

bool CoreToCoreLatency::is_at_baseline(double round_trip) const {
  return round_trip < baseline_ * kTolerance && round_trip > baseline_ / kTolerance;
}

bool CoreToCoreLatency::is_at_baseline() {
  return is_at_baseline(round_trip());
}

bool CoreToCoreLatency::wait() {
  for (double waited = 0; !is_at_baseline(); waited += kPause) {
    if (waited >= std::min(kLongestWait, wait_budget_)) {
      wait_budget_ = std::max(0.0, wait_budget_ - waited);
      return false;
    }
    pause();
  }
  return true;
}

namespace {

constexpr double kBatch = 1e-3;  // seconds of a batch of repeats that are shorter than that
constexpr double kLong = 0.05;   // seconds of a repeat above which three repeats are enough
constexpr int kFewest = 5, kMost = 25, kMostInTurn = 200;
constexpr int kMaxAttempts = 3;  // batches made at most, as a multiple of those planned

struct RepeatPlan {
  int batches, calls;
};

RepeatPlan plan_for(double seconds, double budget) {
  const double calls = std::clamp(std::ceil(kBatch / std::max(seconds, 1e-8)), 1.0, 2000.0);
  const double fewest = seconds > kLong ? 3 : kFewest;
  const double batches = std::clamp(budget / (calls * std::max(seconds, 1e-8)), fewest, double{kMost});
  return {static_cast<int>(batches), static_cast<int>(calls)};
}

/// On rank 0, replaces each entry by its maximum over all ranks.
void reduce_max(Transport& transport, std::vector<double>& seconds) {
  std::vector<float> mine(seconds.begin(), seconds.end());
  const std::int64_t count = mine.size();
  if (!transport.is_rank_0()) return send(transport, RankId{0}, mine.data(), count);
  std::vector<float> theirs(mine.size());
  for (int peer = 1; peer < transport.ranks(); ++peer) {
    receive(transport, RankId(peer), theirs.data(), count);
    for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] = std::max(seconds[i], double{theirs[i]});
  }
}

/// The stolen share of CPU time; 1 if the host has moved the cores.
double disturbed_share(Transport& transport, const StolenShare& stolen) {
  if (transport.core_latency() != nullptr && !transport.core_latency()->is_at_baseline()) return 1;
  return broadcast_from_rank_0(transport, stolen.until_now());
}

/// Calls the function `calls` times, all ranks at once, and adds the mean duration of a call as one repeat.
void time_calls(Transport& transport, int calls, const std::function<void()>& call, Repeats& repeats) {
  barrier(transport);
  const Instant begin = now();
  for (int i = 0; i < calls; ++i) call();
  const Instant end = now();
  repeats.seconds.push_back((end.wall - begin.wall) / calls);
  repeats.cpu_seconds += (end.cpu - begin.cpu) / calls;
}

void finish(Transport& transport, Repeats& repeats) {
  repeats.cpu_seconds /= repeats.seconds.size();
  reduce_max(transport, repeats.seconds);
}

}  // namespace

std::vector<double> undisturbed_seconds(const Repeats& repeats) {
  constexpr std::size_t kEnough = 3;
  std::vector<std::pair<double, double>> all;  // (stolen share, seconds)
  for (std::size_t i = 0; i < repeats.seconds.size(); ++i)
    all.emplace_back(repeats.stolen[i], repeats.seconds[i]);
  std::ranges::sort(all);
  std::vector<double> seconds;
  for (const auto& [stolen, taken] : all) {
    if (stolen <= kMaxStolenShare || seconds.size() < kEnough) seconds.push_back(taken);
  }
  return seconds;
}

Repeats time_repeated(Transport& transport, double budget, const std::function<void()>& call, double pause) {
  barrier(transport);
  call();
  const Instant first = now();
  call();
  RepeatPlan plan = plan_for(broadcast_from_rank_0(transport, now().wall - first.wall), budget);
  if (pause > 0) plan.calls = 1;
  Repeats repeats;
  for (int batch = 0, kept = 0; batch < kMaxAttempts * plan.batches && kept < plan.batches; ++batch) {
    if (pause > 0) std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    if (transport.core_latency() != nullptr) transport.core_latency()->wait();
    const StolenShare stolen;
    time_calls(transport, plan.calls, call, repeats);
    repeats.stolen.push_back(disturbed_share(transport, stolen));
    kept += repeats.stolen.back() <= kMaxStolenShare ? 1 : 0;
  }
  finish(transport, repeats);
  return repeats;
}

std::vector<Repeats> time_interleaved(Transport& transport, double budget,
                                      const std::vector<std::function<void()>>& functions) {
  barrier(transport);
  const Instant first = now();
  for (const auto& function : functions) function();
  const double fit = budget / std::max(broadcast_from_rank_0(transport, now().wall - first.wall), 1e-6);
  const int wanted = static_cast<int>(std::clamp(fit, double{kFewest}, double{kMostInTurn}));
  std::vector<Repeats> all(functions.size());
  for (int round = 0, kept = 0; round < kMaxAttempts * wanted && kept < wanted; ++round) {
    if (transport.core_latency() != nullptr) transport.core_latency()->wait();
    const StolenShare stolen;
    for (std::size_t i = 0; i < functions.size(); ++i) time_calls(transport, 1, functions[i], all[i]);
    const double share = disturbed_share(transport, stolen);
    for (Repeats& one : all) one.stolen.push_back(share);
    kept += share <= kMaxStolenShare ? 1 : 0;
  }
  for (Repeats& one : all) finish(transport, one);
  return all;
}

double median_difference(const Repeats& more, const Repeats& less) {
  Repeats difference = more;
  for (std::size_t i = 0; i < difference.seconds.size(); ++i) difference.seconds[i] -= less.seconds[i];
  return median_of(undisturbed_seconds(difference));
}

CoreSpeedProbe::CoreSpeedProbe(Transport& transport, std::function<double()> probe)
    : transport_(transport), probe_(std::move(probe)) {}

double CoreSpeedProbe::probe() {
  barrier(transport_);
  seconds_.push_back(max_over_ranks(transport_, probe_()));
  return seconds_.back();
}

void CoreSpeedProbe::set_reference() {
  reference_ = seconds_.empty() ? 0 : mean_of_probes(seconds_, median_of(seconds_));
}

double mean_of_probes(const std::vector<double>& seconds, double usual) {
  constexpr double kSlowest = 1.5;
  double sum = 0;
  int count = 0;
  for (const double one : seconds) {
    if (one > kSlowest * usual) continue;
    sum += one;
    ++count;
  }
  return count > 0 ? sum / count : kSlowest * usual;
}

namespace {

constexpr int kPings = 10;

void send_double(Transport& transport, RankId peer, double value) {
  float halves[2];
  std::memcpy(halves, &value, sizeof value);
  send(transport, peer, halves, 2);
}

double receive_double(Transport& transport, RankId peer) {
  float halves[2];
  receive(transport, peer, halves, 2);
  double value = 0;
  std::memcpy(&value, halves, sizeof value);
  return value;
}

/// Rank 0 reads its clock as soon as a question comes.
void answer(Transport& transport, RankId peer) {
  for (int i = 0; i < kPings; ++i) {
    receive_double(transport, peer);
    send_double(transport, peer, now().wall);
  }
}

}  // namespace

double clock_offset_to_rank_0(Transport& transport) {
  barrier(transport);
  double offset = 0, shortest = 0;
  for (int number = 1; number < transport.ranks(); ++number) {
    const RankId peer(number);
    if (transport.is_rank_0()) answer(transport, peer);
    if (transport.rank() != peer) continue;
    for (int i = 0; i < kPings; ++i) {
      const double begin = now().wall;
      send_double(transport, RankId{0}, begin);
      const double there = receive_double(transport, RankId{0}), end = now().wall;
      if (i > 0 && end - begin >= shortest) continue;
      shortest = end - begin;
      offset = (begin + end) / 2 - there;
    }
  }
  return offset;
}

}  // namespace stepcast
