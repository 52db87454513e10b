#include "validate/repeats.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "kernels/stolen_time.hpp"
#include "kernels/stopwatch.hpp"
#include "report/statistics.hpp"
#include "validate/core_distance.hpp"
#include "validate/gather.hpp"

namespace stepcast {
namespace {

constexpr double kBatch = 1e-3;  // seconds between two barriers, where one repeat is shorter
constexpr double kLong = 0.05;   // seconds: three repeats are enough
constexpr int kFewest = 5, kMost = 25, kMostInTurn = 200;
constexpr int kAttempts = 3;  // times as many batches as are wanted

struct Plan {
  int batches, calls;
};

Plan plan_for(double seconds, double budget) {
  const double calls = std::clamp(std::ceil(kBatch / std::max(seconds, 1e-8)), 1.0, 2000.0);
  const double fewest = seconds > kLong ? 3 : kFewest;
  const double batches = std::clamp(budget / (calls * std::max(seconds, 1e-8)), fewest, double{kMost});
  return {static_cast<int>(batches), static_cast<int>(calls)};
}

/// Of each entry the largest over all ranks, on rank 0.
void take_slowest(Transport& transport, std::vector<double>& seconds) {
  std::vector<float> mine(seconds.begin(), seconds.end());
  const auto count = static_cast<std::int64_t>(mine.size());
  if (transport.rank() != 0) return send(transport, 0, mine.data(), count);
  std::vector<float> theirs(mine.size());
  for (int peer = 1; peer < transport.ranks(); ++peer) {
    receive(transport, peer, theirs.data(), count);
    for (std::size_t i = 0; i < seconds.size(); ++i) seconds[i] = std::max(seconds[i], double{theirs[i]});
  }
}

/// What was stolen; all of it where the host has moved the cores.
double disturbed_share(Transport& transport, const StolenShare& stolen) {
  if (transport.cores() != nullptr && !transport.cores()->is_settled()) return 1;
  return shared_value(transport, stolen.until_now());
}

/// All ranks call it so often at once; what one call takes is another repeat.
void time_calls(Transport& transport, int calls, const std::function<void()>& once, Repeats& repeats) {
  barrier(transport);
  const Instant begin = now();
  for (int call = 0; call < calls; ++call) once();
  const Instant end = now();
  repeats.seconds.push_back((end.wall - begin.wall) / calls);
  repeats.cpu_seconds += (end.cpu - begin.cpu) / calls;
}

void finish(Transport& transport, Repeats& repeats) {
  repeats.cpu_seconds /= static_cast<double>(repeats.seconds.size());
  take_slowest(transport, repeats.seconds);
}

}  // namespace

std::vector<double> undisturbed(const Repeats& repeats) {
  constexpr std::size_t kEnough = 3;
  std::vector<std::pair<double, double>> all;  // by what was stolen
  for (std::size_t i = 0; i < repeats.seconds.size(); ++i)
    all.emplace_back(repeats.stolen[i], repeats.seconds[i]);
  std::ranges::sort(all);
  std::vector<double> seconds;
  for (const auto& [stolen, taken] : all) {
    if (stolen <= kMostStolen || seconds.size() < kEnough) seconds.push_back(taken);
  }
  return seconds;
}

double shared_value(Transport& transport, double value) {
  auto shared = static_cast<float>(value);
  for (int peer = 1; transport.rank() == 0 && peer < transport.ranks(); ++peer)
    send(transport, peer, &shared, 1);
  if (transport.rank() != 0) receive(transport, 0, &shared, 1);
  return shared;
}

double greatest_value(Transport& transport, double own) {
  double greatest = own;
  for (const std::vector<double>& rank : gathered(transport, {own}))
    greatest = std::max(greatest, rank.at(0));
  return shared_value(transport, greatest);
}

Repeats repeated(Transport& transport, double budget, const std::function<void()>& once, double pause) {
  barrier(transport);
  once();
  const Instant first = now();
  once();
  Plan plan = plan_for(shared_value(transport, now().wall - first.wall), budget);
  if (pause > 0) plan.calls = 1;
  Repeats repeats;
  for (int batch = 0, kept = 0; batch < kAttempts * plan.batches && kept < plan.batches; ++batch) {
    if (pause > 0) std::this_thread::sleep_for(std::chrono::duration<double>(pause));
    if (transport.cores() != nullptr) transport.cores()->wait();
    const StolenShare stolen;
    time_calls(transport, plan.calls, once, repeats);
    repeats.stolen.push_back(disturbed_share(transport, stolen));
    kept += repeats.stolen.back() <= kMostStolen ? 1 : 0;
  }
  finish(transport, repeats);
  return repeats;
}

std::vector<Repeats> repeated_in_turn(Transport& transport, double budget,
                                      const std::vector<std::function<void()>>& things) {
  barrier(transport);
  const Instant first = now();
  for (const auto& once : things) once();
  const double fit = budget / std::max(shared_value(transport, now().wall - first.wall), 1e-6);
  const int wanted = static_cast<int>(std::clamp(fit, double{kFewest}, double{kMostInTurn}));
  std::vector<Repeats> all(things.size());
  for (int turn = 0, kept = 0; turn < kAttempts * wanted && kept < wanted; ++turn) {
    if (transport.cores() != nullptr) transport.cores()->wait();
    const StolenShare stolen;
    for (std::size_t i = 0; i < things.size(); ++i) time_calls(transport, 1, things[i], all[i]);
    const double share = disturbed_share(transport, stolen);
    for (Repeats& one : all) one.stolen.push_back(share);
    kept += share <= kMostStolen ? 1 : 0;
  }
  for (Repeats& one : all) finish(transport, one);
  return all;
}

double median_difference(const Repeats& more, const Repeats& less) {
  Repeats difference = more;
  for (std::size_t i = 0; i < difference.seconds.size(); ++i) difference.seconds[i] -= less.seconds[i];
  return median_of(undisturbed(difference));
}

}  // namespace stepcast
