#include "models/partition/partition_times.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/cost/roofline.hpp"
#include "models/layer_times/trace.hpp"
#include "models/network/layer.hpp"

namespace stepcast {
namespace {

/// Smallest output tile with which libraries of matrix products are fast [rows, columns]; an assumption.
constexpr double kTile = 64;

bool is_product(LayerKind kind) {
  return kind == LayerKind::convolution || kind == LayerKind::dense;
}

/// A pass of one layer, and the number of its samples.
struct Site {
  const Layer* layer = nullptr;
  const PassCost* cost = nullptr;
  std::int64_t batch = 1;
  bool weights = false;  ///< backward-weights: the product sums over positions, which are divided among tiles
  bool data = false;     ///< backward-data: the product is the gradient of the input
};

double work(const Site& site, const Device& device) {
  const Roofline parts = roofline(*site.layer, *site.cost, site.batch, device);
  const Shape& product = site.data ? site.layer->input : site.layer->output;
  // The rule of devices with shares by kind of kernel has tiles of its own.
  const bool fills = device.kernels || site.weights || !is_product(site.layer->kind);
  const double share = fills ? 1 : filled_share(product, site.batch, device);
  return std::max(parts.computing.value / share, parts.streaming.value);
}

/// Factor by which the samples of a pass, whose median is `time`, are multiplied.
double ratio(const Site& whole, const Site& part, double time, const Device& device) {
  const double before = work(whole, device), after = work(part, device);
  if (!(before > 0)) {  // the rule gives no cost: proportional to the output
    const auto size = [](const Site& site) {
      return static_cast<double>(site.batch) * elements(site.layer->output);
    };
    return size(part) / size(whole);
  }
  const double launch = std::min(time, whole.cost->kernels * device.kernel_gap().value);
  return time > 0 ? (launch + (time - launch) * after / before) / time : 1;
}

}  // namespace

double filled_share(const Shape& product, std::int64_t batch, const Device& device) {
  if (device.multiprocessors == 0 || product.empty()) return 1;
  const bool map = product.size() > 2;
  const double channels = map ? product.front() : product.back();
  const double positions = static_cast<double>(batch) * elements(product) / std::max(1.0, channels);
  const double tiles = std::max(1.0, positions / kTile) * std::max(1.0, channels / kTile);
  return std::min(1.0, tiles / device.multiprocessors);
}

Model with_padded_vocabulary(const Model& whole, Model part) {
  constexpr std::int64_t kMultiple = 128;
  for (std::size_t i = 0; i < part.layers.size(); ++i) {
    Layer& loss = part.layers[i];
    if (loss.kind != LayerKind::softmax_cross_entropy || loss.inputs.front() < 0) continue;
    if (loss.input == whole.layers[i].input || loss.input.back() == whole.layers[i].input.back()) continue;
    std::int64_t& words = loss.input.back();
    words = (words + kMultiple - 1) / kMultiple * kMultiple;
    part.layers[loss.inputs.front()].output.back() = words;
  }
  return part;
}

Trace part_trace(const Model& whole, const Trace& trace, const PartModel& part, const Device& device) {
  check_fits(trace, whole);
  const std::vector<LayerCost> costs = layer_costs(whole, device.choice()),
                               part_costs = layer_costs(*part.model, device.choice());
  Trace times = trace;
  times.name = fmt::format("{}, part", trace.name);
  times.step_seconds.clear();
  times.step_cpu_seconds.clear();
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const auto scale = [&](PassSamples LayerTrace::*pass, PassCost LayerCost::*cost,
                           std::int64_t batch_before, std::int64_t batch) {
      const bool weights = pass == &LayerTrace::backward_weights, data = pass == &LayerTrace::backward_data;
      const Site from{&whole.layers[i], &(costs[i].*cost), batch_before, weights, data};
      const Site to{&part.model->layers[i], &(part_costs[i].*cost), batch, weights, data};
      PassSamples& samples = times.layers[i].*pass;
      const double factor = ratio(from, to, median(samples.seconds).value, device);
      for (double& sample : samples.seconds) sample *= factor;
      for (double& sample : samples.cpu_seconds) sample *= factor;
    };
    scale(&LayerTrace::forward, &LayerCost::forward, trace.batch, part.batch[i]);
    scale(&LayerTrace::backward_data, &LayerCost::backward_data, trace.batch, part.batch[i]);
    scale(&LayerTrace::backward_weights, &LayerCost::backward_weights, trace.batch, part.batch[i]);
    scale(&LayerTrace::update, &LayerCost::update, 1, 1);
  }
  return times;
}

Trace part_trace(const Model& whole, const std::vector<const Trace*>& traces, const PartModel& part,
                 const Device& device) {
  for (const Trace* trace : traces) check_fits(*trace, whole);
  const std::int64_t batch = *std::max_element(part.batch.begin(), part.batch.end());
  return part_trace(whole, interpolated_trace(batch_neighbors(traces, batch), batch), part, device);
}

}  // namespace stepcast
