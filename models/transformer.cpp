#include "models/transformer.hpp"

#include <fmt/format.h>

#include "models/layer_shapes.hpp"

namespace stepcast {
namespace {

constexpr int kNetworkInput = -1;

/// Starts a layer on the output of layer `input`; its caller completes it.
Layer& begin(std::string name, LayerKind kind, int input, Model& model) {
  Layer layer;
  layer.name = std::move(name);
  layer.kind = kind;
  layer.inputs = {input};
  layer.input = input == kNetworkInput ? model.input : model.layers[static_cast<std::size_t>(input)].output;
  layer.output = layer.input;
  return model.layers.emplace_back(std::move(layer));
}

int last(const Model& model) {
  return static_cast<int>(model.layers.size()) - 1;
}

void append_norm(const std::string& name, Model& model) {
  complete_layer_norm(begin(name, LayerKind::layer_norm, last(model), model));
}

void append_dense(const std::string& name, std::int64_t units, Model& model) {
  complete_dense(units, true, begin(name, LayerKind::dense, last(model), model));
}

void append_add(const std::string& name, int skipped_from, Model& model) {
  begin(name, LayerKind::add, last(model), model).inputs.push_back(skipped_from);
}

void append_block(int index, const TransformerStack& stack, Model& model) {
  const auto name = [index](const char* part) { return fmt::format("block{}_{}", index, part); };
  const int block_input = last(model);
  append_norm(name("norm1"), model);
  append_dense(name("qkv"), 3 * stack.width, model);
  Layer& attention = begin(name("attention"), LayerKind::attention, last(model), model);
  attention.heads = stack.heads;
  attention.causal = stack.causal;
  complete_attention(attention);
  append_dense(name("projection"), stack.width, model);
  append_add(name("add1"), block_input, model);
  const int middle = last(model);
  append_norm(name("norm2"), model);
  append_dense(name("expand"), stack.expansion * stack.width, model);
  begin(name("gelu"), LayerKind::gelu, last(model), model);
  append_dense(name("contract"), stack.width, model);
  append_add(name("add2"), middle, model);
}

}  // namespace

TransformerStack read_transformer_stack(const YamlValue& value) {
  const YamlMap yaml =
      value.map({"layers", "width", "heads", "sequence", "vocabulary", "expansion", "causal"});
  const auto count = [&](const char* key, std::int64_t high) {
    return yaml.at(key, "an integer >= 1").integer(1, high);
  };
  TransformerStack stack;
  stack.layers = count("layers", 10'000);
  stack.width = count("width", 1'000'000);
  stack.heads = count("heads", 100'000);
  stack.sequence = count("sequence", 10'000'000);
  stack.vocabulary = count("vocabulary", 100'000'000);
  if (yaml.has("expansion")) stack.expansion = count("expansion", 1000);
  if (const auto causal = yaml.maybe("causal")) stack.causal = causal->boolean();
  if (stack.width % stack.heads != 0) {
    yaml.at("width").refuse(fmt::format("expected a multiple of {} heads, got {}", stack.heads, stack.width));
  }
  return stack;
}

void expand(const TransformerStack& stack, Model& model) {
  model.input = {stack.sequence, stack.width};
  model.layers.clear();
  for (int i = 0; i < stack.layers; ++i) append_block(i, stack, model);
  append_norm("final_norm", model);
  complete_dense(stack.vocabulary, false, begin("vocabulary", LayerKind::dense, last(model), model));
  begin("loss", LayerKind::softmax_cross_entropy, last(model), model).output = {1};
}

}  // namespace stepcast
