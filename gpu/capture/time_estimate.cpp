#include "gpu/capture/time_estimate.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "gpu/capture/selection.hpp"
#include "models/layer_times/trace.hpp"
#include "models/loader.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {
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

bool has_attention(const Model& model) {
  return std::ranges::any_of(model.layers,
                             [](const Layer& layer) { return layer.kind == LayerKind::attention; });
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
  return static_cast<int>(passes.size());
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
  if (two_bytes && has_attention(model)) fixed += kFusedAttentionSeconds;
  const double searches = precision_ == GpuPrecision::f32 ? kOlderCallRuns : 0;
  return Seconds{fixed} + searches * convolution_time(model, trace) +
         static_cast<double>(steps) * step_time(trace);
}

}  // namespace stepcast
