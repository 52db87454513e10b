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
  return fmt::format("{:.4g}", bytes / 1e6);
}

/// In which the parts of a sum are told apart.
std::pair<double, const char*> unit_of(Bytes total) {
  if (total.value >= 1e8) return {1e9, "GB"};
  return total.value >= 1e5 ? std::pair{1e6, "MB"} : std::pair{1e3, "kB"};
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
  const auto [unit, name] = unit_of(all.total());
  const auto in_unit = [unit = unit](Bytes bytes) { return bytes.value / unit; };
  return fmt::format(
      "memory, batch 1  {:.3f} {}: weights {:.3f}, gradients {:.3f}, momentum {:.3f}, activations {:.3f}, "
      "error signals "
      "{:.3f}, input {:.3f}\n"
      "                 {:.3f} {} with ReLU in place and error signals freed early\n",
      in_unit(all.total()), name, in_unit(all.weights), in_unit(all.gradients), in_unit(all.optimizer_state),
      in_unit(all.activations), in_unit(all.error_signals), in_unit(all.input),
      in_unit(training_memory(model, lean).total()), name);
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
