#include "models/network/model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/network/layer.hpp"
#include "models/network/layer_list.hpp"

namespace stepcast {
namespace {

bool has_trainable(const Layer& layer) {
  return std::any_of(layer.parameters.begin(), layer.parameters.end(),
                     [](const ParameterTensor& tensor) { return tensor.trainable; });
}

}  // namespace

std::vector<bool> backward_data_needed(const Model& model) {
  std::vector<bool> needed(model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    for (const int input : model.layers[i].inputs) {
      if (input < 0) continue;
      if (needed[input] || has_trainable(model.layers[input])) needed[i] = true;
    }
  }
  return needed;
}

std::vector<int> consumers(const Model& model) {
  std::vector<int> readers(model.layers.size());
  for (const Layer& layer : model.layers) {
    for (const int input : layer.inputs) {
      if (input >= 0) ++readers[input];
    }
  }
  return readers;
}

namespace {

constexpr double kMostParameters = 1e18;  // limit of a whole network, so that counts fit 64 bits

template <class Predicate>
std::int64_t count_parameters(const Model& model, Predicate wanted) {
  std::int64_t count = 0;
  for (const Layer& layer : model.layers) {
    for (const ParameterTensor& tensor : layer.parameters) count += wanted(tensor) ? tensor.elements() : 0;
  }
  return count;
}

void check_parameters(const YamlValue& value, const Model& model) {
  double sum = 0;
  for (const Layer& layer : model.layers) {
    for (const ParameterTensor& tensor : layer.parameters) sum += tensor.elements();
  }
  if (sum > kMostParameters) value.refuse(fmt::format("a network of {:.3g} parameters is too large", sum));
}

void set_layers(const YamlValue& value, LayerList list, Model& model) {
  model.layers = std::move(list.layers);
  model.blocks = std::move(list.blocks);
  check_parameters(value, model);
}

}  // namespace

Model read_model(const YamlValue& value) {
  const bool stack = value.any_map().has("transformer_stack");
  const YamlMap yaml =
      read_map(value, stack ? keys_named(model_keys(), {"name", "source", "sample", "transformer_stack"})
                            : keys_named(model_keys(), {"name", "source", "sample", "input", "layers"}));
  Model model;
  model.name = yaml.at("name", "the model's name").text();
  model.source = yaml.at("source", "where the layers come from").text();
  if (const auto sample = yaml.maybe("sample")) model.sample = sample->text();
  if (stack) {
    const TransformerStack transformer = read_transformer_stack(yaml.at("transformer_stack"));
    model.input = transformer_input(transformer);
    set_layers(value, transformer_layers(transformer), model);
    return model;
  }
  const YamlValue input = yaml.at("input", "the shape of one sample, such as [3, 224, 224]");
  for (const YamlValue& size : input.list()) model.input.push_back(size.integer(1, 1'000'000'000));
  if (model.input.empty() || model.input.size() > 4) input.expected("a shape of 1 to 4 integers");
  check_size(input, model.input);
  set_layers(value, read_layers(yaml.at("layers", "a list of layers"), model.input), model);
  return model;
}

bool has_layers(const Model& model, LayerKind kind) {
  return std::ranges::any_of(model.layers, [kind](const Layer& layer) { return layer.kind == kind; });
}

std::int64_t trainable_parameters(const Model& model) {
  return count_parameters(model, [](const ParameterTensor& tensor) { return tensor.trainable; });
}

std::int64_t all_parameters(const Model& model) {
  return count_parameters(model, [](const ParameterTensor&) { return true; });
}

std::int64_t gradient_tensors(const Model& model) {
  std::int64_t count = 0;
  for (const Layer& layer : model.layers) {
    for (const ParameterTensor& tensor : layer.parameters) count += tensor.trainable ? 1 : 0;
  }
  return count;
}

}  // namespace stepcast
