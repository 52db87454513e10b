#include "models/cost/roofline.hpp"

#include <algorithm>

namespace stepcast {
namespace {

/// Multiplications saved by Winograd's F(2x2, 3x3): 36 against 16.
/// Source: A. Lavin, S. Gray, Fast algorithms for convolutional neural networks, CVPR 2016, section 4.1.
constexpr double kFastConvolution = 2.25;

constexpr Bytes kSingle{4};

double arithmetic_gain(const Layer& layer) {
  if (layer.kind != LayerKind::convolution || layer.input.size() != 3) return 1;
  const auto& kernel = layer.window.kernel;
  const auto& stride = layer.window.stride;
  const bool wide = std::all_of(kernel.begin(), kernel.end(), [](std::int64_t size) { return size >= 3; });
  const bool dense = std::all_of(stride.begin(), stride.end(), [](std::int64_t step) { return step == 1; });
  return wide && dense ? kFastConvolution : 1;
}

}  // namespace

Roofline roofline(const Layer& layer, const PassCost& cost, std::int64_t batch, const Device& device) {
  const Flops work = static_cast<double>(batch) * cost.flops;
  return {cost.kernels * device.launch_overhead, work / (arithmetic_gain(layer) * device.peak),
          cost.bytes(batch, kSingle) / (kStreamingShare * device.memory_bandwidth)};
}

Seconds roofline_time(const Layer& layer, const PassCost& cost, std::int64_t batch, const Device& device,
                      double efficiency) {
  const Roofline parts = roofline(layer, cost, batch, device);
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
