#pragma once

#include "models/cost/cost.hpp"
#include "models/cost/device.hpp"

namespace stepcast {

/// Share of the nominal memory bandwidth that plain copies reach: 202.7 of 288.4 GB/s on a K40m.
/// Source: Microway, NVIDIA Tesla K40 "Atlas" GPU accelerator up close, bandwidthTest, device to device.
constexpr double kStreamingShare = 0.70;

/// The three parts of the roofline rule (see roofline_time), at efficiency 1.
struct Roofline {
  Seconds launching;  ///< kernels x launch overhead
  Seconds computing;  ///< flops / (peak x gain)
  Seconds streaming;  ///< bytes / (bandwidth x 0.70)
};

/// Parts of one pass of one layer.
Roofline roofline(const Layer& layer, const PassCost& cost, std::int64_t batch, const Device& device);

/// Seconds of one pass of one layer by the rule of docs/explanation/derived-traces.md:
///
///   kernels x launch overhead + max(flops / (peak x e x gain), bytes / (bandwidth x e x 0.70))
///
/// with e the device's efficiency, the only calibrated number, and gain 2.25 for 2-D convolutions of stride 1
/// with a kernel of at least 3, else 1.
///
/// A device with KernelShares has shares of its own for each kind of layer instead of e and 0.70, and no part
/// of it is fitted here.
Seconds roofline_time(const Layer& layer, const PassCost& cost, std::int64_t batch, const Device& device,
                      double efficiency);

/// Time of one training step: the sum over all layers and passes.
Seconds roofline_step(const Model& model, std::int64_t batch, const Device& device, double efficiency);

}  // namespace stepcast
