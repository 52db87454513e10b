#include "kernels/timing/capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/error.hpp"
#include "core/os/process.hpp"
#include "core/random.hpp"
#include "core/text.hpp"
#include "kernels/timing/host_info.hpp"
#include "kernels/timing/step_timer.hpp"
#include "models/cost/memory.hpp"

namespace stepcast {

namespace {

constexpr std::uint32_t kResamples = 2000;

double middle_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double resampled_median(const std::vector<double>& values, RandomKey key) {
  std::vector<double> drawn;
  for (std::size_t i = 0; i < values.size(); ++i) {
    key.item = i;
    drawn.push_back(values[uniform_index(key, values.size())]);
  }
  return middle_of(std::move(drawn));
}

}  // namespace

Interval median_of_ratios(const std::vector<double>& numerator, const std::vector<double>& denominator,
                          std::uint64_t seed) {
  if (numerator.empty() || numerator.size() != denominator.size()) {
    throw std::invalid_argument(
        "median_of_ratios: expected equal numbers of numerators and denominators, at least one");
  }
  std::vector<double> ratios;
  for (std::size_t i = 0; i < numerator.size(); ++i) ratios.push_back(numerator[i] / denominator[i]);
  std::vector<double> medians;
  for (std::uint32_t i = 0; i < kResamples; ++i) {
    medians.push_back(resampled_median(ratios, {.seed = seed, .purpose = Purpose::bootstrap, .step = i}));
  }
  std::sort(medians.begin(), medians.end());
  const auto at = [&](double share) { return medians[static_cast<std::size_t>(share * (kResamples - 1))]; };
  return {at(0.025), middle_of(ratios), at(0.975)};
}

void flag_difference(const std::vector<double>& inside, const std::vector<double>& outside, double tolerance,
                     std::uint64_t seed, Trace& trace) {
  const Interval ratio = median_of_ratios(inside, outside, seed);
  if (ratio.low >= 1 - tolerance && ratio.high <= 1 + tolerance) return;
  trace.flags.push_back(
      fmt::format("the sum over layers differs from steps without timers inside by {:+.1f} % (95 % interval "
                  "{:+.1f} to {:+.1f} %)",
                  100 * (ratio.middle - 1), 100 * (ratio.low - 1), 100 * (ratio.high - 1)));
}

void flag_medians(double tolerance, Trace& trace) {
  const double ratio = step_time(trace) / median(trace.step_seconds);
  if (std::abs(ratio - 1) <= tolerance) return;
  trace.flags.push_back(fmt::format(
      "the sum of the layers' medians differs from the median step without timers inside by {:+.1f} %",
      100 * (ratio - 1)));
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

Trace captured_trace(const Backend& backend, const Model& model, const CaptureOptions& options) {
  Trace trace;
  trace.name = options.name;
  trace.kind = Trace::Kind::captured;
  trace.model = model.name;
  trace.batch = options.batch;
  trace.device = backend.device();
  trace.library = backend.library();
  trace.date = today();
  trace.command = options.command;
  return trace;
}

namespace {

double disturbance(const StepPair& pair, int threads) {
  return std::max(disturbance(pair.by_pass, threads), disturbance(pair.whole, threads));
}

/// Adds the least disturbed pairs if too few were kept, and flags the trace.
/// @throws InputError if fewer than half were kept
void fill_up(const CaptureOptions& options, StepPairs& measured, Trace& trace) {
  const std::size_t wanted = options.steps;
  const std::size_t kept = measured.kept.size();
  if (kept == wanted) return;
  if (2 * kept < wanted) {
    throw InputError(
        fmt::format("capture: only {} of {} pairs of steps ran undisturbed (wall and CPU time within {:g} "
                    "%): another program uses the processor; capture again on an idle machine",
                    kept, kept + measured.disturbed.size(), 100 * options.disturbance));
  }
  std::sort(measured.disturbed.begin(), measured.disturbed.end(), [&](const StepPair& a, const StepPair& b) {
    return disturbance(a, options.threads) < disturbance(b, options.threads);
  });
  const auto last = measured.disturbed.begin() + (wanted - kept);
  measured.kept.insert(measured.kept.end(), measured.disturbed.begin(), last);
  trace.flags.push_back(
      fmt::format("{} of {} pairs of steps were disturbed: wall and CPU time differ by more than {:g} %",
                  wanted - kept, wanted, 100 * options.disturbance));
}

void flag_difference(const StepPairs& measured, const CaptureOptions& options, Trace& trace) {
  std::vector<double> inside, outside;
  for (const StepPair& pair : measured.kept) {
    inside.push_back(sum_over_passes(pair.by_pass).wall);
    outside.push_back(pair.whole.total.wall);
  }
  flag_difference(inside, outside, options.tolerance, options.seed, trace);
}

void add_samples(const Network& network, const StepPairs& measured, Trace& trace) {
  for (const Layer& layer : network.model().layers) trace.layers.emplace_back().name = layer.name;
  const std::vector<LayerPass> passes = passes_in_order(network);
  for (const StepPair& pair : measured.kept) {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      PassSamples& samples = samples_of(trace.layers[passes[i].layer], passes[i].pass);
      samples.seconds.push_back(pair.by_pass.passes[i].wall);
      samples.cpu_seconds.push_back(pair.by_pass.passes[i].cpu);
    }
    trace.step_seconds.push_back(pair.whole.total.wall);
    trace.step_cpu_seconds.push_back(pair.whole.total.cpu);
  }
}

void check_memory(const Model& model, const CaptureOptions& options) {
  const Bytes needed = training_memory(model, {.batch = options.batch, .workspace = {}}).total();
  const Bytes available = machine_memory();
  if (needed <= available) return;
  throw LimitError(fmt::format(
      "capture: {} with batch {} needs {:.3g} GB, this machine has {:.3g} GB; take a smaller batch",
      model.name, options.batch, needed.value / 1e9, available.value / 1e9));
}

Trace described(const Backend& backend, const Model& model, const CaptureOptions& options) {
  Trace trace = captured_trace(backend, model, options);
  trace.precision = "f32";
  trace.device = fmt::format("{} ({} used)", backend.device(), options.threads);
  trace.threads = options.threads;
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
  if (!copies_.empty()) options.part.parameters_of = copies_.front().get();
  Network& copy = *copies_.emplace_back(std::make_shared<Network>(backend_, model, options));
  for (std::size_t i = 0; options_.exchange.within_pass && i < model.layers.size(); ++i) {
    if (copy.contains(i)) copy.kernel(i).defer_sums();
  }
}

Network& Capture::next_copy() {
  return *copies_[turn_++ % copies_.size()];
}

StepTimes Capture::step_by_pass(const Instant& clock_cost) {
  return time_passes_of_step(next_copy(), clock_cost, options_.exchange);
}

StepTimes Capture::whole_step() {
  return time_whole_step(next_copy(), options_.exchange);
}

/// Alternates the order of the two steps, so that a drift of the machine cancels in the ratio.
StepPair Capture::measure_pair(const Instant& clock_cost) {
  StepPair pair;
  const bool by_pass_first = (pairs_.kept.size() + pairs_.disturbed.size()) % 2 == 0;
  if (by_pass_first) pair.by_pass = step_by_pass(clock_cost);
  pair.whole = whole_step();
  if (!by_pass_first) pair.by_pass = step_by_pass(clock_cost);
  return pair;
}

void Capture::report(double step_seconds) const {
  if (!options_.progress) return;
  const double kept = pairs_.kept.size();
  options_.progress(kept / options_.steps, Seconds{2 * (options_.steps - kept) * step_seconds});
}

void Capture::measure(int pairs) {
  for (int i = 0; i < options_.warm_up; ++i) report(whole_step().total.wall);
  const Instant clock_cost = cost_of_now();
  const std::size_t wanted = pairs_.kept.size() + pairs;
  for (int i = 0; i < pairs * options_.attempts && pairs_.kept.size() < wanted; ++i) {
    const StepPair pair = measure_pair(clock_cost);
    const bool disturbed =
        options_.max_over_ranks(disturbance(pair, options_.threads)) > options_.disturbance;
    (disturbed ? pairs_.disturbed : pairs_.kept).push_back(pair);
    report(pair.whole.total.wall);
  }
}

Trace Capture::trace() {
  Trace trace = described(backend_, copies_.front()->model(), options_);
  fill_up(options_, pairs_, trace);
  flag_difference(pairs_, options_, trace);
  add_samples(*copies_.front(), pairs_, trace);
  flag_medians(options_.tolerance, trace);
  pairs_ = {};
  return trace;
}

Trace capture(Backend& backend, const Model& model, const CaptureOptions& options) {
  Capture all(backend, model, options);
  all.measure(options.steps);
  return all.trace();
}

}  // namespace stepcast
