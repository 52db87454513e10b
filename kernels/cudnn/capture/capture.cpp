#include "kernels/timing/capture.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>

#include "core/error.hpp"
#include "kernels/cudnn/backend.hpp"
#include "kernels/cudnn/capture/step_events.hpp"
#include "kernels/timing/step_timer.hpp"
#include "models/cost/memory.hpp"
#include "models/layer_times/trace.hpp"

namespace stepcast {
namespace cudnn {
namespace {

std::string pci_bus(int device) {
  std::array<char, 32> name{};
  check(cudaDeviceGetPCIBusId(name.data(), name.size(), device), "cudaDeviceGetPCIBusId");
  return name.data();
}

void check_memory(const GpuOptions& gpu, const Model& model, const CaptureOptions& options) {
  const Bytes needed = training_memory(model, {.batch = options.batch, .workspace = {}}).total();
  const Bytes there = free_gpu_memory(gpu.device);
  const double share = gpu.precision == GpuPrecision::f32 || gpu.precision == GpuPrecision::tf32 ? 1 : 0.5;
  if (share * needed.value <= there.value) return;
  throw LimitError(
      fmt::format("capture: {} with batch {} needs {:.3g} GB, {:.3g} GB of the GPU are free; take "
                  "a smaller batch",
                  model.name, options.batch, share * needed.value / 1e9, there.value / 1e9));
}

/// cuDNN's calls for convolutions and batch norm take tensors of less than 2^31 elements.
void check_sizes(const Model& model, const CaptureOptions& options) {
  constexpr double kMost = 2147483648.0;
  for (const Layer& layer : model.layers) {
    const bool by_cudnn = layer.kind == LayerKind::convolution || layer.kind == LayerKind::batch_norm;
    const double batch = options.batch;
    const double most = batch * std::max(elements(layer.input), elements(layer.output));
    if (!by_cudnn || most < kMost) continue;
    throw LimitError(
        fmt::format("capture: layer {} of {} has a tensor of {:.4g} elements with batch {}, and cuDNN's "
                    "calls take less than 2^31; take a smaller batch",
                    layer.name, model.name, most, options.batch));
  }
}

NetworkOptions network_options(const CaptureOptions& options) {
  return {.batch = options.batch,
          .seed = options.seed,
          .data_seed = options.seed,
          .optimizer = options.optimizer,
          .part = options.part};
}

struct TimedPair {
  std::vector<double> passes;
  double whole = 0;
};

/// Alternates the order of the two steps of a pair, so that a drift of the GPU's clocks cancels in the ratio.
std::vector<TimedPair> measure(StepEvents& events, const CaptureOptions& options) {
  std::vector<TimedPair> pairs;
  events.warm_up(options.warm_up);
  const double cost = events.cost_of_event();
  for (int i = 0; i < options.steps; ++i) {
    TimedPair pair;
    if (i % 2 == 0) pair.passes = events.time_passes(cost);
    pair.whole = events.time_whole_step();
    if (i % 2 == 1) pair.passes = events.time_passes(cost);
    pairs.push_back(pair);
    const double share = (i + 1.0) / options.steps;
    if (options.progress) options.progress(share, {2 * pair.whole * (options.steps - i - 1)});
  }
  return pairs;
}

/// Divides the time of each step among its passes in proportion to the times that they take with events
/// between them, because those passes were launched singly and the step replayed its passes as graphs.
void divide_among_passes(std::vector<TimedPair>& pairs, Trace& trace) {
  for (TimedPair& pair : pairs) {
    const double singly = std::accumulate(pair.passes.begin(), pair.passes.end(), 0.0);
    for (double& seconds : pair.passes) seconds *= singly > 0 ? pair.whole / singly : 0;
  }
  trace.notes.emplace_back(
      "the step's passes were replayed as CUDA graphs; layers share its time as they do without graphs");
}

void add_samples(const Network& network, const std::vector<TimedPair>& pairs, Trace& trace) {
  for (const Layer& layer : network.model().layers) trace.layers.emplace_back().name = layer.name;
  const std::vector<LayerPass> passes = passes_in_order(network);
  for (const TimedPair& pair : pairs) {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      samples_of(trace.layers[passes[i].layer], passes[i].pass).seconds.push_back(pair.passes[i]);
    }
    trace.step_seconds.push_back(pair.whole);
  }
}

void flag(const std::vector<TimedPair>& pairs, const CaptureOptions& options, Trace& trace) {
  std::vector<double> inside, outside;
  for (const TimedPair& pair : pairs) {
    inside.push_back(std::accumulate(pair.passes.begin(), pair.passes.end(), 0.0));
    outside.push_back(pair.whole);
  }
  flag_difference(inside, outside, options.tolerance, options.seed, trace);
  flag_medians(options.tolerance, trace);
}

void add_graph(const std::shared_ptr<Device>& device, Network& network, const CaptureOptions& options,
               Trace& trace) {
  try {
    StepGraph graph(device, network);
    graph.time();
    for (int i = 0; i < options.steps; ++i) trace.graph_step_seconds.push_back(graph.time());
  } catch (const std::exception& error) {  // the trace is complete without it
    trace.notes.push_back(fmt::format("no CUDA graph of the step: {}", error.what()));
  }
}

/// Adds a note to a flagged trace: the share of the step that remains when a CUDA graph removes launch costs.
void explain(Trace& trace) {
  if (trace.flags.empty() || trace.graph_step_seconds.empty()) return;
  const double step = median(trace.step_seconds).value, graph = median(trace.graph_step_seconds).value;
  trace.notes.push_back(
      fmt::format("as one CUDA graph a step takes {:.0f} % of its time: for the rest the GPU waits for the "
                  "host, and events "
                  "between the passes slow the host down",
                  100 * graph / step));
}

Trace described(const Backend& backend, const GpuOptions& gpu, const Model& model,
                const CaptureOptions& options) {
  Trace trace = captured_trace(backend, model, options);
  trace.precision = to_string(gpu.precision);
  trace.source =
      "stepcast-gpu capture: whole training steps on synthetic data on one stream, CUDA events between the "
      "passes";
  return trace;
}

void add_notes(const Device& device, Network& network, const std::string& before, Trace& trace) {
  trace.notes.push_back("before: " + before);
  trace.notes.push_back("after: " + gpu_state(pci_bus(device.options.device)));
  trace.notes.push_back(fmt::format("layout {}, workspace limit {} MiB, of which {:.1f} MiB were used",
                                    device.options.layout == ImageLayout::nhwc ? "NHWC" : "NCHW",
                                    device.workspace.bytes >> 20, device.workspace.most_used / 0x1p20));
  if (device.search_seconds > 0)
    trace.notes.push_back(fmt::format("algorithms of {} convolution passes were chosen in {:.2g} s",
                                      device.choices.size(), device.search_seconds));
  if (device.options.fuses)
    trace.notes.push_back(
        device.element() == Element::f32
            ? "one kernel updates the parameters of all layers, which share its time by their elements"
            : "one kernel each converts the weights of all layers, converts their gradients and updates "
              "their "
              "parameters; layers share its time by their elements");
  for (std::size_t i = 0; i < trace.layers.size(); ++i) trace.layers[i].notes = network.kernel(i).notes();
}

}  // namespace
}  // namespace cudnn

void check_capture_fits(const GpuOptions& gpu, const Model& model, const CaptureOptions& options) {
  cudnn::check_sizes(model, options);
  cudnn::check_memory(gpu, model, options);
}

void require_gpu(int device) {
  cudnn::require_device(device);
}

Bytes free_gpu_memory(int device) {
  cudnn::require_device(device);
  std::size_t free = 0, all = 0;
  cudnn::check(cudaSetDevice(device), "cudaSetDevice");
  cudnn::check(cudaMemGetInfo(&free, &all), "cudaMemGetInfo");
  return {static_cast<double>(free)};
}

std::string gpu_name(int device) {
  cudnn::require_device(device);
  cudaDeviceProp properties{};
  cudnn::check(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
  return properties.name;
}

Trace capture_on_gpu(const GpuOptions& gpu, const Model& model, const CaptureOptions& options) {
  const auto device = std::make_shared<cudnn::Device>(gpu);
  check_capture_fits(gpu, model, options);
  const auto backend = cudnn::make_backend(device);
  Network network(*backend, model, cudnn::network_options(options));
  cudnn::StepEvents events(device, network);
  const std::string before = gpu_state(cudnn::pci_bus(gpu.device));
  std::vector<cudnn::TimedPair> pairs = cudnn::measure(events, options);
  Trace trace = cudnn::described(*backend, gpu, model, options);
  if (network.has_recordings()) cudnn::divide_among_passes(pairs, trace);
  cudnn::add_samples(network, pairs, trace);
  cudnn::flag(pairs, options, trace);
  cudnn::add_graph(device, network, options, trace);
  cudnn::explain(trace);
  cudnn::add_notes(*device, network, before, trace);
  return trace;
}

std::vector<double> time_steps_on_gpu(const GpuOptions& gpu, const Model& model,
                                      const CaptureOptions& options) {
  const auto device = std::make_shared<cudnn::Device>(gpu);
  check_capture_fits(gpu, model, options);
  const auto backend = cudnn::make_backend(device);
  Network network(*backend, model, cudnn::network_options(options));
  cudnn::StepEvents events(device, network);
  events.warm_up(options.warm_up);
  std::vector<double> seconds;
  for (int i = 0; i < options.steps; ++i) seconds.push_back(events.time_whole_step());
  return seconds;
}

}  // namespace stepcast
