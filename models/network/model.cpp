#include "models/network/model.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "models/network/layer.hpp"
#include "models/network/layer_reader.hpp"
#include "models/network/transformer.hpp"

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
      const auto below = static_cast<std::size_t>(input);
      if (needed[below] || has_trainable(model.layers[below])) needed[i] = true;
    }
  }
  return needed;
}

std::vector<int> consumers(const Model& model) {
  std::vector<int> readers(model.layers.size());
  for (const Layer& layer : model.layers) {
    for (const int input : layer.inputs) {
      if (input >= 0) ++readers[static_cast<std::size_t>(input)];
    }
  }
  return readers;
}

namespace {

constexpr int kNetworkInput = -1;
constexpr double kMostElements = 1e15;  // limit of one array, so that counts of whole networks fit 64 bits

using Indices = std::map<std::string, int>;  // indices of the layers read so far, by name

const Shape& shape_of(int index, const Model& model) {
  return index == kNetworkInput ? model.input : model.layers[static_cast<std::size_t>(index)].output;
}

int index_of(const YamlValue& value, const Indices& indices) {
  const auto found = indices.find(value.text());
  if (found == indices.end()) value.expected("the name of a layer above, or input");
  return found->second;
}

std::vector<int> read_inputs(const YamlMap& yaml, const Indices& indices, const Model& model) {
  const auto inputs = yaml.maybe("inputs");
  if (!inputs) return {static_cast<int>(model.layers.size()) - 1};
  std::vector<int> result;
  for (const YamlValue& input : inputs->list()) {
    const int index = index_of(input, indices);
    if (index != kNetworkInput && is_loss(model.layers[static_cast<std::size_t>(index)].kind)) {
      input.refuse("expected a layer that is not a loss: a loss ends the network");
    }
    result.push_back(index);
  }
  return result;
}

void check_inputs(const YamlValue& value, const Layer& layer, const Model& model) {
  const std::size_t count = layer.inputs.size();
  if (layer.kind == LayerKind::add ? count < 2 : count != 1) {
    value.refuse(fmt::format("a layer of kind {} takes {}, got {}", to_string(layer.kind),
                             layer.kind == LayerKind::add ? "two or more inputs" : "one input", count));
  }
  for (const int input : layer.inputs) {
    if (shape_of(input, model) == layer.input) continue;
    value.refuse(fmt::format("expected inputs of equal shapes, got {} and {}", to_string(layer.input),
                             to_string(shape_of(input, model))));
  }
}

void check_size(const YamlValue& value, const Shape& shape) {
  double product = 1;
  for (const std::int64_t size : shape) product *= static_cast<double>(size);
  if (product > kMostElements) value.refuse(fmt::format("an array of {} is too large", to_string(shape)));
}

Layer read_one(const YamlValue& value, const Indices& indices, const Model& model) {
  const YamlMap yaml = value.any_map();
  Layer layer;
  layer.name = yaml.at("name", "the layer's name").text();
  layer.kind = static_cast<LayerKind>(yaml.at("kind", "a layer kind").one_of(layer_kind_words()));
  layer.inputs = read_inputs(yaml, indices, model);
  if (!layer.inputs.empty()) layer.input = shape_of(layer.inputs.front(), model);
  check_inputs(value, layer, model);
  read_layer(value, layer);
  check_size(value, layer.output);
  for (const ParameterTensor& tensor : layer.parameters) check_size(value, tensor.shape);
  return layer;
}

void check_all_used(const std::vector<YamlValue>& values, const Model& model) {
  std::vector<bool> used(model.layers.size());
  for (const Layer& layer : model.layers) {
    for (const int input : layer.inputs) {
      if (input != kNetworkInput) used[static_cast<std::size_t>(input)] = true;
    }
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    if (used[i] || is_loss(model.layers[i].kind)) continue;
    values[i].refuse(
        fmt::format("no layer reads the output of {}; end the network with a loss such as "
                    "softmax_cross_entropy",
                    model.layers[i].name));
  }
}

void read_layers(const YamlValue& list, Model& model) {
  Indices indices{{"input", kNetworkInput}};
  const std::vector<YamlValue> values = list.list();
  if (values.empty()) list.expected("at least one layer");
  for (const YamlValue& value : values) {
    Layer layer = read_one(value, indices, model);
    if (!indices.emplace(layer.name, static_cast<int>(model.layers.size())).second) {
      value.refuse(fmt::format("two layers are called {}", layer.name));
    }
    model.layers.push_back(std::move(layer));
  }
  check_all_used(values, model);
}

template <class Predicate>
std::int64_t count_parameters(const Model& model, Predicate wanted) {
  std::int64_t count = 0;
  for (const Layer& layer : model.layers) {
    for (const ParameterTensor& tensor : layer.parameters) count += wanted(tensor) ? tensor.elements() : 0;
  }
  return count;
}

}  // namespace

Model read_model(const YamlValue& value) {
  const bool stack = value.any_map().has("transformer_stack");
  const YamlMap yaml = stack ? value.map({"name", "source", "sample", "transformer_stack"})
                             : value.map({"name", "source", "sample", "input", "layers"});
  Model model;
  model.name = yaml.at("name", "the model's name").text();
  model.source = yaml.at("source", "where the layers come from").text();
  if (const auto sample = yaml.maybe("sample")) model.sample = sample->text();
  if (stack) {
    const TransformerStack transformer = read_transformer_stack(yaml.at("transformer_stack"));
    model.input = transformer_input(transformer);
    model.layers = transformer_layers(transformer);
    return model;
  }
  const YamlValue input = yaml.at("input", "the shape of one sample, such as [3, 224, 224]");
  for (const YamlValue& size : input.list()) model.input.push_back(size.integer(1, 1'000'000'000));
  if (model.input.empty() || model.input.size() > 4) input.expected("a shape of 1 to 4 integers");
  check_size(input, model.input);
  read_layers(yaml.at("layers", "a list of layers"), model);
  return model;
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
