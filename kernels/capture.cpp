#include "kernels/capture.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "core/error.hpp"
#include "kernels/bootstrap.hpp"
#include "kernels/processor.hpp"
#include "kernels/step_timer.hpp"

namespace stepcast {
namespace {

/// Steps of one sort, timed inside or outside.
struct Series {
  std::vector<StepTimes> kept, disturbed;
};

struct Measured {
  Series inside, outside;
};

bool enough(const Series& series, const CaptureOptions& options) {
  const auto made = series.kept.size() + series.disturbed.size();
  return series.kept.size() >= static_cast<std::size_t>(options.steps) ||
         made >= static_cast<std::size_t>(options.steps) * static_cast<std::size_t>(options.attempts);
}

void keep_or_drop(const StepTimes& step, const CaptureOptions& options, Series& series) {
  const bool disturbed = disturbance(step, options.threads) > options.disturbance;
  (disturbed ? series.disturbed : series.kept).push_back(step);
}

void report(const Measured& measured, const CaptureOptions& options, double step_seconds) {
  if (!options.progress) return;
  const double wanted = 2.0 * options.steps;
  const auto kept = static_cast<double>(measured.inside.kept.size() + measured.outside.kept.size());
  const double share = std::min(1.0, kept / wanted);
  options.progress(share, Seconds{(wanted - share * wanted) * step_seconds});
}

Measured measure(Network& network, const CaptureOptions& options) {
  for (int i = 0; i < options.warm_up; ++i) {
    const StepTimes step = time_step_outside(network);
    report({}, options, step.total.wall);
  }
  const Instant clock_cost = cost_of_now();
  Measured measured;
  while (!enough(measured.inside, options) || !enough(measured.outside, options)) {
    StepTimes step;
    if (!enough(measured.inside, options)) {
      step = time_step_inside(network, clock_cost);
      keep_or_drop(step, options, measured.inside);
    }
    if (!enough(measured.outside, options)) {
      step = time_step_outside(network);
      keep_or_drop(step, options, measured.outside);
    }
    report(measured, options, step.total.wall);
  }
  return measured;
}

/// Fills up with the least disturbed steps. Returns how many were needed.
std::size_t fill_up(const CaptureOptions& options, Series& series) {
  const auto wanted = static_cast<std::size_t>(options.steps);
  if (2 * series.kept.size() < wanted) {
    throw InputError(fmt::format(
        "capture: only {} of {} steps ran undisturbed (wall and CPU time within {:g} %): something else uses "
        "the "
        "processor; capture again on an idle machine",
        series.kept.size(), series.kept.size() + series.disturbed.size(), 100 * options.disturbance));
  }
  std::sort(series.disturbed.begin(), series.disturbed.end(), [&](const StepTimes& a, const StepTimes& b) {
    return disturbance(a, options.threads) < disturbance(b, options.threads);
  });
  const std::size_t missing = wanted - std::min(wanted, series.kept.size());
  for (std::size_t i = 0; i < missing; ++i) series.kept.push_back(series.disturbed.at(i));
  return missing;
}

std::vector<double> wall_of(const std::vector<StepTimes>& steps) {
  std::vector<double> wall;
  for (const StepTimes& step : steps)
    wall.push_back((step.passes.empty() ? step.total : sum_over_passes(step)).wall);
  return wall;
}

void flag_difference(const Measured& measured, const CaptureOptions& options, Trace& trace) {
  const Interval ratio =
      ratio_of_medians(wall_of(measured.inside.kept), wall_of(measured.outside.kept), options.seed);
  if (ratio.low >= 1 - options.tolerance && ratio.high <= 1 + options.tolerance) return;
  trace.flags.push_back(
      fmt::format("the sum over layers differs from steps without timers inside by {:+.1f} % (95 % interval "
                  "{:+.1f} to {:+.1f} %)",
                  100 * (ratio.middle - 1), 100 * (ratio.low - 1), 100 * (ratio.high - 1)));
}

PassSamples& samples_of(LayerTrace& layer, Pass pass) {
  switch (pass) {
    case Pass::forward:
      return layer.forward;
    case Pass::backward_data:
      return layer.backward_data;
    case Pass::backward_weights:
      return layer.backward_weights;
    case Pass::update:
      break;
  }
  return layer.update;
}

void add_samples(const Network& network, const Measured& measured, Trace& trace) {
  for (const Layer& layer : network.model().layers) trace.layers.emplace_back().name = layer.name;
  const std::vector<PassOfLayer> passes = passes_in_order(network);
  for (const StepTimes& step : measured.inside.kept) {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      PassSamples& samples = samples_of(trace.layers[passes[i].layer], passes[i].pass);
      samples.seconds.push_back(step.passes[i].wall);
      samples.cpu_seconds.push_back(step.passes[i].cpu);
    }
  }
  for (const StepTimes& step : measured.outside.kept) {
    trace.step_seconds.push_back(step.total.wall);
    trace.step_cpu_seconds.push_back(step.total.cpu);
  }
}

Trace described(const Backend& backend, const Model& model, const CaptureOptions& options) {
  const auto today = std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
  Trace trace;
  trace.name = options.name;
  trace.kind = Trace::Kind::captured;
  trace.model = model.name;
  trace.batch = options.batch;
  trace.precision = "f32";
  trace.device = fmt::format("{} ({} used)", backend.device(), options.threads);
  trace.library = backend.library();
  trace.threads = options.threads;
  trace.date = fmt::format("{:%Y-%m-%d}", fmt::gmtime(today));
  trace.command = options.command;
  trace.source =
      "stepcast capture: whole training steps on synthetic data, the clocks read between the passes "
      "(wall: CLOCK_MONOTONIC, CPU: CLOCK_PROCESS_CPUTIME_ID)";
  return trace;
}

}  // namespace

Trace capture(Backend& backend, const Model& model, const CaptureOptions& options) {
  set_kernel_threads(options.threads);
  Network network(backend, model,
                  {.batch = options.batch, .seed = options.seed, .optimizer = options.optimizer});
  Measured measured = measure(network, options);
  Trace trace = described(backend, model, options);
  const std::size_t disturbed = fill_up(options, measured.inside) + fill_up(options, measured.outside);
  if (disturbed > 0) {
    trace.flags.push_back(
        fmt::format("{} of {} steps were disturbed: wall and CPU time differ by more than {:g} %", disturbed,
                    2 * options.steps, 100 * options.disturbance));
  }
  flag_difference(measured, options, trace);
  add_samples(network, measured, trace);
  return trace;
}

}  // namespace stepcast
