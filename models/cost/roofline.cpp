#include "models/cost/roofline.hpp"

#include <algorithm>
#include <cmath>

namespace stepcast {
namespace {

/// Multiplications saved by Winograd's F(2x2, 3x3): 36 against 16.
/// Source: A. Lavin, S. Gray, Fast algorithms for convolutional neural networks, CVPR 2016, section 4.1.
constexpr double kFastConvolution = 2.25;

constexpr Bytes kFp32{kFp32Bytes};

double arithmetic_gain(const Layer& layer) {
  if (layer.kind != LayerKind::convolution || layer.input.size() != 3) return 1;
  const auto& kernel = layer.window.kernel;
  const auto& stride = layer.window.stride;
  const bool wide = std::all_of(kernel.begin(), kernel.end(), [](std::int64_t size) { return size >= 3; });
  const bool dense = std::all_of(stride.begin(), stride.end(), [](std::int64_t step) { return step == 1; });
  return wide && dense ? kFastConvolution : 1;
}

/// Share of the peak at which the products of a layer run.
double product_share(const Layer& layer, const KernelShares& kernels) {
  if (layer.kind != LayerKind::convolution && layer.kind != LayerKind::locally_connected)
    return kernels.dense;
  const bool pointwise = std::ranges::max(layer.window.kernel) == 1;
  return pointwise ? kernels.pointwise : kernels.window;
}

double bandwidth_share(const Layer& layer, const KernelShares& kernels) {
  if (layer.kind == LayerKind::batch_norm) {
    const double channels = static_cast<double>(layer.input.front());
    return kernels.batch_norm * (channels / (channels + kernels.batch_norm_channels));
  }
  return layer.kind == LayerKind::layer_norm ? kernels.layer_norm : kernels.streaming;
}

/// Bytes of an array that the cache still holds when the next kernel reads it: all of it up to the size of
/// the cache, nothing from twice that size on.
Bytes cached(Bytes array, const KernelShares& kernels) {
  if (!(kernels.cache.value > 0)) return {0};
  return std::clamp(2 - array / kernels.cache, 0.0, 1.0) * array;
}

bool changes_layout(const Layer& layer, const KernelShares& kernels) {
  return kernels.channel_multiple > 0 && layer.kind == LayerKind::convolution &&
         std::ranges::max(layer.window.kernel) > 1;
}

/// Bytes moved by the copies of a convolution's input and output to another layout and back.
Bytes layout_copies(const Layer& layer, std::int64_t batch, const KernelShares& kernels) {
  if (!changes_layout(layer, kernels)) return {0};
  Bytes sum;
  for (const Shape& shape : {layer.input, layer.output}) {
    const Bytes array = static_cast<double>(batch) * static_cast<double>(elements(shape)) * kFp32;
    sum += 2 * array - cached(array, kernels);
  }
  return sum;
}

/// Work over that of the layer, as kernels of tensor cores pad the input channels.
double padded(const Layer& layer, const KernelShares& kernels) {
  if (!changes_layout(layer, kernels)) return 1;
  const double channels = static_cast<double>(layer.input.front());
  return std::ceil(channels / kernels.channel_multiple) * kernels.channel_multiple / channels;
}

/// The parts of the rule of KernelShares.
Roofline generation_parts(const Layer& layer, const PassCost& cost, std::int64_t batch,
                          const Device& device) {
  const KernelShares& kernels = *device.kernels;
  const double gain = arithmetic_gain(layer) > 1 ? kernels.winograd : 1;
  const Flops work = static_cast<double>(batch) * padded(layer, kernels) * cost.flops;
  const Bytes further = (static_cast<double>(batch) * cost.eager + cost.reread) * kFp32;
  const Bytes from_cache = cached(static_cast<double>(batch) * cost.just_written * kFp32, kernels);
  const Bytes moved = cost.bytes(batch, kFp32) + further - from_cache;
  const bool recurrent = layer.kind == LayerKind::lstm || layer.kind == LayerKind::gru;
  const bool filters = cost.weights && layer.kind == LayerKind::convolution;
  const double share = product_share(layer, kernels) * (filters ? kernels.weights : 1);
  const Seconds copying =
      layout_copies(layer, batch, kernels) / (kernels.streaming * device.memory_bandwidth);
  return {cost.kernels * (recurrent ? kernels.recurrent_step : kernels.gap) + copying,
          work / (gain * share * device.peak),
          moved / (bandwidth_share(layer, kernels) * device.memory_bandwidth)};
}

}  // namespace

Roofline roofline(const Layer& layer, const PassCost& cost, std::int64_t batch, const Device& device) {
  if (device.kernels) return generation_parts(layer, cost, batch, device);
  const Flops work = static_cast<double>(batch) * cost.flops;
  return {cost.kernels * device.launch_overhead, work / (arithmetic_gain(layer) * device.peak),
          cost.bytes(batch, kFp32) / (kStreamingShare * device.memory_bandwidth)};
}

Seconds roofline_time(const Layer& layer, const PassCost& cost, std::int64_t batch, const Device& device,
                      double efficiency) {
  const Roofline parts = roofline(layer, cost, batch, device);
  if (device.kernels && layer.kind == LayerKind::attention)  // products and passes over the scores take turns
    return parts.launching + parts.computing + parts.streaming;
  return parts.launching + std::max(parts.computing, parts.streaming) / efficiency;
}

Seconds roofline_step(const Model& model, std::int64_t batch, const Device& device, double efficiency) {
  const std::vector<LayerCost> costs = layer_costs(model);
  Seconds sum;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    for (const PassCost& cost :
         {costs[i].forward, costs[i].backward_data, costs[i].backward_weights, costs[i].update}) {
      sum += roofline_time(model.layers[i], cost, batch, device, efficiency);
    }
  }
  return sum;
}

}  // namespace stepcast
