#include "kernels/timing/step_timer.hpp"

#include <time.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace stepcast {
namespace {

double seconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
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

Instant between(const Instant& begin, const Instant& end) {
  return {end.wall - begin.wall, end.cpu - begin.cpu};
}

namespace {

Instant later(const Instant& date, const Instant& by) {
  return {date.wall + by.wall, date.cpu + by.cpu};
}

/// A copy of the exchange whose duration is added to `dates`, so that it is not part of any interval that
/// begins at them.
StepExchange uncounted(const StepExchange& exchange, std::vector<Instant*> dates) {
  const auto wait = [dates](const auto& call) {
    const Instant begin = now();
    call();
    const Instant away = between(begin, now());
    for (Instant* date : dates) *date = later(*date, away);
  };
  StepExchange timed;
  if (exchange.within_pass)
    timed.within_pass = [&exchange, wait](std::span<float> sum) { wait([&] { exchange.within_pass(sum); }); };
  if (exchange.before_pass)
    timed.before_pass = [&exchange, wait](Network& network, std::size_t layer, Pass pass) {
      wait([&] { exchange.before_pass(network, layer, pass); });
    };
  if (exchange.before_update)
    timed.before_update = [&exchange, wait](Network& network) {
      wait([&] { exchange.before_update(network); });
    };
  return timed;
}

Instant without_cost(const Instant& interval, const Instant& cost) {
  return {std::max(0.0, interval.wall - cost.wall), std::max(0.0, interval.cpu - cost.cpu)};
}

}  // namespace

std::vector<LayerPass> passes_in_order(const Network& network) {
  std::vector<LayerPass> passes;
  const auto add = [&](std::size_t layer, Pass pass) {
    if (network.has(layer, pass)) passes.push_back({layer, pass});
  };
  const std::size_t layers = network.model().layers.size();
  for (std::size_t i = 0; i < layers; ++i) add(i, Pass::forward);
  for (std::size_t i = layers; i-- > 0;) {
    add(i, Pass::backward_data);
    add(i, Pass::backward_weights);
  }
  for (std::size_t i = 0; i < layers; ++i) add(i, Pass::update);
  return passes;
}

StepTimes time_whole_step(Network& network, const StepExchange& exchange) {
  Instant begin = now();
  network.step({}, uncounted(exchange, {&begin}));
  return {between(begin, now()), {}};
}

StepTimes time_passes_of_step(Network& network, const Instant& clock_cost, const StepExchange& exchange) {
  StepTimes step;
  step.passes.reserve(4 * network.model().layers.size());
  Instant begin = now();
  Instant last = begin;
  const auto after_pass = [&](std::size_t, Pass) {
    const Instant time = now();
    step.passes.push_back(without_cost(between(last, time), clock_cost));
    last = time;
  };
  network.step(after_pass, uncounted(exchange, {&begin, &last}));
  step.total = between(begin, now());
  return step;
}

Instant sum_over_passes(const StepTimes& step) {
  Instant sum;
  for (const Instant& pass : step.passes) {
    sum.wall += pass.wall;
    sum.cpu += pass.cpu;
  }
  return sum;
}

double disturbance(const StepTimes& step, int threads) {
  return std::abs(step.total.wall - step.total.cpu / threads) / step.total.wall;
}

}  // namespace stepcast
