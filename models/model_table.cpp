#include <fmt/format.h>

#include <algorithm>

#include "models/cost.hpp"
#include "models/layer_shapes.hpp"
#include "models/memory.hpp"
#include "models/table.hpp"

namespace stepcast {
namespace {

constexpr double kSingle = 4;  // B

std::string parameters_of(const Layer& layer) {
  std::int64_t sum = 0;
  for (const ParameterTensor& tensor : layer.parameters) sum += tensor.trainable ? tensor.elements() : 0;
  return sum == 0 ? "" : fmt::format("{}", sum);
}

std::string giga(double flops) {
  return flops == 0 ? "" : fmt::format("{:.4g}", flops / 1e9);
}

std::string megabytes(double bytes) {
  return fmt::format("{:.3f}", bytes / 1e6);
}

double backward(const LayerCost& cost) {
  return (cost.backward_data.flops + cost.backward_weights.flops).value;
}

std::string row(const Layer& layer, const LayerCost& cost, std::size_t width) {
  return fmt::format("{:{}}  {:21}  {:>18}  {:>12}  {:>9}  {:>9}  {:>10}\n", layer.name, width,
                     to_string(layer.kind), to_string(layer.output), parameters_of(layer),
                     giga(cost.forward.flops.value), giga(backward(cost)),
                     megabytes(kSingle * static_cast<double>(elements(layer.output))));
}

std::string totals(const Model& model) {
  double outputs = 0;
  for (const Layer& layer : model.layers) outputs += static_cast<double>(elements(layer.output));
  const Flops forward = forward_flops(model);
  return fmt::format(
      "parameters       {} trainable in {} tensors, {} with running statistics\n"
      "work a sample    {:.6g} GFLOP forward, {:.6g} forward and backward (convolutions, dense, recurrent, "
      "attention)\n"
      "outputs          {} MB a sample\n",
      trainable_parameters(model), gradient_tensors(model), all_parameters(model), forward.value / 1e9,
      training_flops(model).value / 1e9, megabytes(kSingle * outputs));
}

std::string memory_lines(const Model& model) {
  const Memory all = training_memory(model, {});
  MemoryOptions lean;
  lean.activations = MemoryOptions::Activations::in_place;
  lean.error_signals = MemoryOptions::ErrorSignals::freed;
  const auto gigabytes = [](Bytes bytes) { return bytes.value / 1e9; };
  return fmt::format(
      "memory, batch 1  {:.3f} GB: weights {:.3f}, gradients {:.3f}, momentum {:.3f}, activations {:.3f}, "
      "error signals "
      "{:.3f}, input {:.3f}\n"
      "                 {:.3f} GB with ReLU in place and error signals freed early\n",
      gigabytes(all.total()), gigabytes(all.weights), gigabytes(all.gradients),
      gigabytes(all.optimizer_state), gigabytes(all.activations), gigabytes(all.error_signals),
      gigabytes(all.input), gigabytes(training_memory(model, lean).total()));
}

}  // namespace

std::string model_table(const Model& model) {
  std::size_t width = 5;
  for (const Layer& layer : model.layers) width = std::max(width, layer.name.size());
  std::string text = fmt::format("{}: one sample is one {}, input {}\n{}\n\n", model.name, model.sample,
                                 to_string(model.input), model.source);
  text += fmt::format("{:{}}  {:21}  {:>18}  {:>12}  {:>9}  {:>9}  {:>10}\n", "layer", width, "kind",
                      "output", "parameters", "fwd GFLOP", "bwd GFLOP", "output MB");
  const std::vector<LayerCost> costs = layer_costs(model);
  for (std::size_t i = 0; i < costs.size(); ++i) text += row(model.layers[i], costs[i], width);
  return text + "\n" + totals(model) + memory_lines(model);
}

}  // namespace stepcast
