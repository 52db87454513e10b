#include "models/cost/roofline.hpp"

#include <algorithm>

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

double bandwidth_share(LayerKind kind, const KernelShares& kernels) {
  if (kind == LayerKind::batch_norm) return kernels.batch_norm;
  return kind == LayerKind::layer_norm ? kernels.layer_norm : kernels.streaming;
}

/// The parts of the rule of KernelShares.
Roofline generation_parts(const Layer& layer, const PassCost& cost, std::int64_t batch,
                          const Device& device) {
  const KernelShares& kernels = *device.kernels;
  const double gain = arithmetic_gain(layer) > 1 ? kernels.winograd : 1;
  const Flops work = static_cast<double>(batch) * cost.flops;
  const Bytes further = (static_cast<double>(batch) * cost.eager + cost.reread) * kFp32;
  const Bytes moved = cost.bytes(batch, kFp32) + further;
  const bool recurrent = layer.kind == LayerKind::lstm || layer.kind == LayerKind::gru;
  return {cost.kernels * (recurrent ? kernels.recurrent_step : kernels.gap),
          work / (gain * product_share(layer, kernels) * device.peak),
          moved / (bandwidth_share(layer.kind, kernels) * device.memory_bandwidth)};
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
