#include "gpu/capture/step_forecast.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"
#include "core/yaml.hpp"
#include "gpu/capture/selection.hpp"
#include "models/layer_times/trace.hpp"
#include "models/loader.hpp"
#include "scenarios/reader/library.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {
namespace {

/// Traces of a folder with the given precision and layout, which the end of their file names tells
/// (trace_name), sorted by file name.
std::vector<Trace> traces_ending_in(const TraceChoice& choice) {
  std::error_code error;
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(choice.folder, error)) {
    const std::string end = fmt::format("-{}-{}-gpu", choice.precision, choice.layout);
    if (entry.path().extension() == ".yaml" && entry.path().stem().string().ends_with(end)) {
      files.push_back(entry.path());
    }
  }
  if (error) throw InputError(fmt::format("{}: cannot read: {}", choice.folder.string(), error.message()));
  std::sort(files.begin(), files.end());
  std::vector<Trace> traces;
  for (const auto& file : files) {
    const YamlNode node = read_yaml(file);
    traces.push_back(read_trace(YamlValue(node, "")));
  }
  return traces;
}

}  // namespace

std::vector<Trace> read_traces(const TraceChoice& choice) {
  std::vector<Trace> traces = traces_ending_in(choice);
  std::erase_if(traces, [&](const Trace& trace) { return trace.model != choice.model; });
  if (traces.empty()) {
    throw InputError(fmt::format("{}: no capture of {} with precision {} and layout {}",
                                 choice.folder.string(), choice.model, choice.precision, choice.layout));
  }
  for (const Trace& trace : traces) {
    if (trace.device == traces[0].device) continue;
    throw InputError(
        fmt::format("traces {} and {} are from different devices, {} and {}; keep captures of each device in "
                    "a folder of its own",
                    traces[0].name, trace.name, traces[0].device, trace.device));
  }
  return traces;
}

std::vector<std::string> models_in(const TraceChoice& choice) {
  std::map<std::string, int> count;
  for (const Trace& trace : traces_ending_in(choice)) ++count[trace.model];
  std::vector<std::string> models;
  for (const auto& [model, traces] : count) {
    if (traces >= 2) models.push_back(model);
  }
  return models;
}

namespace {

std::vector<const Trace*> pointers_to(const std::vector<Trace>& traces) {
  std::vector<const Trace*> pointers;
  for (const Trace& trace : traces) pointers.push_back(&trace);
  return pointers;
}

}  // namespace

StepForecast forecast_step(const Model& model, const std::vector<Trace>& traces, std::int64_t batch) {
  const auto [least, most] = std::minmax_element(
      traces.begin(), traces.end(), [](const Trace& a, const Trace& b) { return a.batch < b.batch; });
  if (batch < least->batch || batch > most->batch) {
    throw InputError(
        fmt::format("--batch: expected {} to {}, the range of batch sizes captured for {}, got {}",
                    least->batch, most->batch, traces[0].model, batch));
  }
  const BatchNeighbors neighbors = batch_neighbors(pointers_to(traces), batch);
  StepForecast forecast{{}, neighbors.lower->batch, neighbors.upper->batch};
  LayerTimes times = layer_times(model, pointers_to(traces), batch);
  for (const LayerSeconds& layer : times.median)
    forecast.step += Seconds{layer.forward + layer.backward + layer.update};
  forecast.flags = std::move(times.flags);
  return forecast;
}

namespace {

// Fitted on captures on one H200 (docs/notes/2026-11-first-gpu.md). The traces' notes state how long
// algorithms were chosen; whole captures are known to one second, by the dates of their files.

/// Library handles, memory, parameters, nvidia-smi, rise of the clocks. Captures took 0.8 (ResNet-50) to 1.5
/// s (VGG-16, GPT-2) longer than their searches and steps together.
constexpr double kSetUpSeconds = 1.5;
/// Plans of one pass of a convolution: 0.021 to 0.028 s of ResNet-50's 68, 0.028 to 0.035 s of VGG-16's 26.
constexpr double kPassSeconds = 0.03;
/// In f32 the algorithms of cuDNN's older calls are timed, too: with 64 samples of ResNet-50, whose
/// convolutions take 0.0471 s a step, for 8 s.
constexpr double kOlderCallRuns = 170;
/// Plans of fused attention, whose kernels are compiled: GPT-2 in bf16 took 1.1 to 1.9 s more.
constexpr double kFusedAttentionSeconds = 1.5;

/// The device in this precision; unchanged, and thus too slow, where its file does not have it.
Device in_precision(const Device& device, GpuPrecision precision) {
  if (precision == GpuPrecision::f32) return device;
  try {
    return with_kernels(device, {.precision = static_cast<KernelChoice::Precision>(precision),
                                 .layout = KernelChoice::Layout::nhwc});
  } catch (const InputError&) {
    return device;
  }
}

/// Time of the convolutions in one step.
Seconds convolution_time(const Model& model, const Trace& trace) {
  Seconds sum;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const LayerTrace& layer = trace.layers[i];
    if (model.layers[i].kind != LayerKind::convolution) continue;
    for (const PassSamples* pass : {&layer.forward, &layer.backward_data, &layer.backward_weights})
      sum += median(pass->seconds);
  }
  return sum;
}

}  // namespace

int convolution_passes(const Model& model) {
  std::set<std::string> passes;
  for (const Layer& layer : model.layers) {
    if (layer.kind != LayerKind::convolution) continue;
    const Window& window = layer.window;
    const std::string shape = fmt::format("{} {} {} {} {} {} {}", layer.input, layer.output, window.kernel,
                                          window.stride, window.pad_before, window.pad_after, layer.groups);
    passes.insert({"forward " + shape, "backward weights " + shape});
    if (layer.inputs.front() != kNetworkInput) passes.insert("backward data " + shape);
  }
  return passes.size();
}

TimeEstimate::TimeEstimate(const std::string& gpu, GpuPrecision precision) : precision_(precision) {
  try {
    const std::filesystem::path models = data_folder() / "models";
    const Device device = load_device(models, device_file_of(gpu));
    calibration_ = load_calibration(device, models);
    device_ = in_precision(device, precision);
  } catch (const InputError& error) {
    why_not_ = error.what();
  }
}

Seconds TimeEstimate::of(const Model& model, std::int64_t batch, int steps) const {
  if (!device_) return {0};
  const Trace trace = derive(model, batch, *device_, calibration_, {});
  double fixed = kSetUpSeconds + kPassSeconds * convolution_passes(model);
  const bool two_bytes = precision_ == GpuPrecision::f16 || precision_ == GpuPrecision::bf16;
  if (two_bytes && has_layers(model, LayerKind::attention)) fixed += kFusedAttentionSeconds;
  const double searches = precision_ == GpuPrecision::f32 ? kOlderCallRuns : 0;
  return Seconds{fixed} + searches * convolution_time(model, trace) + steps * step_time(trace);
}

}  // namespace stepcast
