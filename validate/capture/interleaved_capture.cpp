#include "validate/capture/interleaved_capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/os/files.hpp"
#include "kernels/timing/step_timer.hpp"
#include "models/layer_times/compression_times.hpp"
#include "runtime/host_noise/repeated_timing.hpp"
#include "runtime/transport/progress_thread.hpp"
#include "runtime/transport/transport.hpp"

namespace stepcast {
namespace {

// Each round has one turn of every network, so that the turns of one network are spread over the whole time:
// steps that are close in time were captured at the same speed of the machine.
constexpr int kFewestRounds = 16, kMostPairs = 128;
constexpr double kCaptureSeconds = 40;       // of all rounds of all forecasts together, about
constexpr double kFewestCaptureSeconds = 8;  // of the rounds of one forecast
constexpr int kFewestRoundsOfForecast = 3;   // whatever the number of forecasts
// After a turn of another network (its data in shared caches, the clock of the interconnect between cores and
// caches), steps of 4 ms are slower by 17 % at first and by 4 % after 25 ms. So each turn begins with warm-up
// steps.
constexpr double kWarmSeconds = 0.1, kPairSeconds = 0.05;

/// Duration of a warm step on rank 0 [s]; the same on all ranks.
double step_seconds(const RankContext& run, Capture& capture) {
  double seconds = 0;
  for (int warm = 0; warm < 2; ++warm) {
    barrier(run.transport);
    const Instant begin = now();
    capture.measure(0);
    seconds = now().wall - begin.wall;
  }
  return std::max(broadcast_from_rank_0(run.transport, seconds), 1e-6);
}

/// Sets the number of warm-up steps and pairs in a turn of each capture.
/// @return the number of rounds that fit into the time of one forecast, from the duration of a warm step of
///         each network. Ranks that sleep need few rounds: they sleep for whatever times the trace has.
int plan_rounds(const RankContext& run, bool sleeping, int forecasts, std::vector<CaptureJob>& jobs) {
  if (sleeping) return kFewestRounds;
  double round = 0;
  for (CaptureJob& one : jobs) {
    const double step = step_seconds(run, *one.capture);
    const int warm_up = std::ceil(kWarmSeconds / step);
    one.capture->set_warm_up(warm_up);
    one.pairs = std::clamp<int>(kPairSeconds / (2 * step), 1, kMostPairs / kFewestRounds);
    round += (warm_up + 2 * one.pairs) * step;
  }
  const double seconds = std::max(kCaptureSeconds / forecasts, kFewestCaptureSeconds);
  const int fewest = std::max(kFewestRounds / forecasts, kFewestRoundsOfForecast);
  return static_cast<int>(std::clamp(seconds / round, double(fewest), double{kMostPairs}));
}

}  // namespace

int plan_turns(const RankContext& run, bool sleeping, int forecasts, std::vector<CaptureJob>& jobs) {
  const int rounds = plan_rounds(run, sleeping, forecasts, jobs);
  for (CaptureJob& one : jobs) {
    one.pairs = std::clamp(kMostPairs / rounds, 1, one.pairs);
    if (one.capture != nullptr) one.capture->set_pairs(rounds * one.pairs);
  }
  return rounds * jobs.size();
}

void capture_turn(const RankContext& run, CoreSpeedProbe* speed, const CaptureJob& job) {
  const ComputeScope computing(&run.polling);  // threads that carry messages of runs must not poll
  set_status(run.state, job.status.c_str());
  if (run.transport.core_latency() != nullptr) run.transport.core_latency()->wait();
  if (speed != nullptr) speed->probe();
  barrier(run.transport);
  if (job.capture != nullptr) job.capture->measure(job.pairs);
}

namespace {

/// On rank 0, joins the samples of all ranks.
void join_ranks(Transport& transport, PassSamples& samples) {
  for (std::vector<double>* const times : {&samples.seconds, &samples.cpu_seconds}) {
    std::vector<double> all;
    for (const auto& rank : gather_on_rank_0(transport, *times))
      all.insert(all.end(), rank.begin(), rank.end());
    if (!all.empty()) *times = std::move(all);
  }
}

void join_ranks(Transport& transport, CompressionTrace& trace) {
  join_ranks(transport, trace.copy);
  for (CompressionTrace::Codec& codec : trace.codecs) {
    join_ranks(transport, codec.quantize);
    join_ranks(transport, codec.restore);
  }
}

/// Trains with the last gradient, and computes this rank's next one.
std::span<float> next_gradient(Network& network) {
  const std::size_t layers = network.model().layers.size();
  const auto pass = [&](std::size_t layer, Pass which) {
    if (network.has(layer, which)) network.run(layer, which);
  };
  network.begin_update();
  for (std::size_t i = 0; i < layers; ++i) pass(i, Pass::update);
  for (std::size_t i = 0; i < layers; ++i) pass(i, Pass::forward);
  for (std::size_t i = layers; i-- > 0;) {
    pass(i, Pass::backward_data);
    pass(i, Pass::backward_weights);
  }
  network.backend().finish();
  const ParameterView& all = network.all_parameters();
  return {all.gradient, all.elements};
}

}  // namespace

void capture_compressions(const RankContext& run, const Validation& validation,
                          const ValidationOptions& options, Library& library, const GradientSource& source) {
  std::set<std::string> done;
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    const NetworkVariant& variant = validation.variants[i];
    const auto file = compression_file(run.folder, variant.model);
    if (!validation.plan(i).compresses || !done.insert(variant.model).second ||
        measured_before(options, file))
      continue;
    set_status(run.state, fmt::format("timing the compression of gradients of {}", variant.model).c_str());
    barrier(run.transport);
    const YamlNode model = command_line_name(variant.model);
    CompressionCapture capturing;
    capturing.repeats = std::max(capturing.repeats / options.forecasts, kFewestRoundsOfForecast);
    capturing.device = source.device;
    capturing.name = file.stem().string();
    capturing.command = fmt::format("stepcast validate {} --ranks {}", options.scenario, run.cluster.ranks);
    capturing.elements = trainable_parameters(library.model(YamlValue(model, "model")));
    if (Network* const network = source.network ? source.network(variant) : nullptr) {
      capturing.elements = network->all_parameters().elements;
      capturing.next_gradient = [network, &state = run.state] {
        state.heartbeat.fetch_add(1);
        return next_gradient(*network);
      };
    }
    CompressionTrace trace = capture_compression(capturing);
    join_ranks(run.transport, trace);
    if (run.transport.is_rank_0()) write_atomically(file, to_yaml(trace));
  }
}

}  // namespace stepcast
