#include "kernels/capture.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "kernels/capture_flags.hpp"
#include "kernels/processor.hpp"
#include "kernels/step_timer.hpp"
#include "models/memory.hpp"

namespace stepcast {
namespace {

double disturbance(const StepPair& pair, int threads) {
  return std::max(disturbance(pair.inside, threads), disturbance(pair.outside, threads));
}

/// Fills up with the least disturbed pairs and says so, or refuses.
void fill_up(const CaptureOptions& options, StepPairs& measured, Trace& trace) {
  const auto wanted = static_cast<std::size_t>(options.steps);
  const std::size_t kept = measured.kept.size();
  if (kept == wanted) return;
  if (2 * kept < wanted) {
    throw InputError(
        fmt::format("capture: only {} of {} pairs of steps ran undisturbed (wall and CPU time within {:g} "
                    "%): something else uses "
                    "the processor; capture again on an idle machine",
                    kept, kept + measured.disturbed.size(), 100 * options.disturbance));
  }
  std::sort(measured.disturbed.begin(), measured.disturbed.end(), [&](const StepPair& a, const StepPair& b) {
    return disturbance(a, options.threads) < disturbance(b, options.threads);
  });
  const auto last = measured.disturbed.begin() + static_cast<std::ptrdiff_t>(wanted - kept);
  measured.kept.insert(measured.kept.end(), measured.disturbed.begin(), last);
  trace.flags.push_back(
      fmt::format("{} of {} pairs of steps were disturbed: wall and CPU time differ by more than {:g} %",
                  wanted - kept, wanted, 100 * options.disturbance));
}

void flag_difference(const StepPairs& measured, const CaptureOptions& options, Trace& trace) {
  std::vector<double> inside, outside;
  for (const StepPair& pair : measured.kept) {
    inside.push_back(sum_over_passes(pair.inside).wall);
    outside.push_back(pair.outside.total.wall);
  }
  flag_difference(inside, outside, options, trace);
}

void add_samples(const Network& network, const StepPairs& measured, Trace& trace) {
  for (const Layer& layer : network.model().layers) trace.layers.emplace_back().name = layer.name;
  const std::vector<PassOfLayer> passes = passes_in_order(network);
  for (const StepPair& pair : measured.kept) {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      PassSamples& samples = samples_of(trace.layers[passes[i].layer], passes[i].pass);
      samples.seconds.push_back(pair.inside.passes[i].wall);
      samples.cpu_seconds.push_back(pair.inside.passes[i].cpu);
    }
    trace.step_seconds.push_back(pair.outside.total.wall);
    trace.step_cpu_seconds.push_back(pair.outside.total.cpu);
  }
}

void check_memory(const Model& model, const CaptureOptions& options) {
  const Bytes needed = training_memory(model, {.batch = options.batch, .workspace = {}}).total();
  const Bytes there = processor_memory();
  if (needed <= there) return;
  throw LimitError(fmt::format(
      "capture: {} with batch {} needs {:.3g} GB, this machine has {:.3g} GB; take a smaller batch",
      model.name, options.batch, needed.value / 1e9, there.value / 1e9));
}

Trace described(const Backend& backend, const Model& model, const CaptureOptions& options) {
  Trace trace;
  trace.name = options.name;
  trace.kind = Trace::Kind::captured;
  trace.model = model.name;
  trace.batch = options.batch;
  trace.precision = "f32";
  trace.device = fmt::format("{} ({} used)", backend.device(), options.threads);
  trace.library = backend.library();
  trace.threads = options.threads;
  trace.date = today();
  trace.command = options.command;
  trace.source =
      "stepcast capture: whole training steps on synthetic data, the clocks read between the passes "
      "(wall: CLOCK_MONOTONIC, CPU: CLOCK_PROCESS_CPUTIME_ID)";
  return trace;
}

}  // namespace

Capture::Capture(Backend& backend, const Model& model, CaptureOptions options)
    : backend_(backend), options_(std::move(options)) {
  check_memory(model, options_);
  set_kernel_threads(options_.threads);
  for (int i = 0; i < options_.copies; ++i) add_copy(model);
}

void Capture::add_copy(const Model& model) {
  NetworkOptions options{.batch = options_.batch,
                         .seed = options_.seed,
                         .data_seed = options_.seed + copies_.size(),
                         .optimizer = options_.optimizer,
                         .part = options_.part};
  if (!copies_.empty()) options.part.shares = copies_.front().get();
  Network& copy = *copies_.emplace_back(std::make_unique<Network>(backend_, model, options));
  for (std::size_t i = 0; options_.exchange.within_pass && i < model.layers.size(); ++i) {
    if (copy.contains(i)) copy.kernel(i).couple();
  }
}

Network& Capture::next_copy() {
  return *copies_[turn_++ % copies_.size()];
}

StepTimes Capture::step_inside(const Instant& clock_cost) {
  return time_step_inside(next_copy(), clock_cost, options_.exchange);
}

StepTimes Capture::step_outside() {
  return time_step_outside(next_copy(), options_.exchange);
}

/// Which of the two comes first alternates, so that a drift pulls the ratio both ways.
StepPair Capture::measure_pair(const Instant& clock_cost) {
  StepPair pair;
  const bool inside_first = (pairs_.kept.size() + pairs_.disturbed.size()) % 2 == 0;
  if (inside_first) pair.inside = step_inside(clock_cost);
  pair.outside = step_outside();
  if (!inside_first) pair.inside = step_inside(clock_cost);
  return pair;
}

void Capture::report(double step_seconds) const {
  if (!options_.progress) return;
  const auto kept = static_cast<double>(pairs_.kept.size());
  options_.progress(kept / options_.steps, Seconds{2 * (options_.steps - kept) * step_seconds});
}

void Capture::measure(int pairs) {
  for (int i = 0; i < options_.warm_up; ++i) report(step_outside().total.wall);
  const Instant clock_cost = cost_of_now();
  const std::size_t wanted = pairs_.kept.size() + static_cast<std::size_t>(pairs);
  for (int i = 0; i < pairs * options_.attempts && pairs_.kept.size() < wanted; ++i) {
    const StepPair pair = measure_pair(clock_cost);
    const bool disturbed = options_.worst(disturbance(pair, options_.threads)) > options_.disturbance;
    (disturbed ? pairs_.disturbed : pairs_.kept).push_back(pair);
    report(pair.outside.total.wall);
  }
}

Trace Capture::trace() {
  Trace trace = described(backend_, copies_.front()->model(), options_);
  fill_up(options_, pairs_, trace);
  flag_difference(pairs_, options_, trace);
  add_samples(*copies_.front(), pairs_, trace);
  flag_medians(options_, trace);
  return trace;
}

Trace capture(Backend& backend, const Model& model, const CaptureOptions& options) {
  Capture all(backend, model, options);
  all.measure(options.steps);
  return all.trace();
}

}  // namespace stepcast
