#include "models/network/transformer.hpp"

#include <fmt/format.h>

#include "models/network/layer.hpp"
#include "models/network/network_keys.hpp"

namespace stepcast {
namespace {

/// The layers so far, and the shape of the network's input.
struct LayerChain {
  Shape input;
  std::vector<Layer> layers;
};

/// Appends a layer that reads the output of layer `input`. The caller completes it.
Layer& begin(std::string name, LayerKind kind, int input, LayerChain& chain) {
  Layer layer;
  layer.name = std::move(name);
  layer.kind = kind;
  layer.inputs = {input};
  layer.input = input == kNetworkInput ? chain.input : chain.layers[static_cast<std::size_t>(input)].output;
  layer.output = layer.input;
  return chain.layers.emplace_back(std::move(layer));
}

int last(const LayerChain& chain) {
  return static_cast<int>(chain.layers.size()) - 1;
}

void append_norm(const std::string& name, LayerChain& chain) {
  complete_layer_norm(begin(name, LayerKind::layer_norm, last(chain), chain));
}

void append_dense(const std::string& name, std::int64_t units, LayerChain& chain) {
  complete_dense(units, true, begin(name, LayerKind::dense, last(chain), chain));
}

void append_add(const std::string& name, int skipped_from, LayerChain& chain) {
  begin(name, LayerKind::add, last(chain), chain).inputs.push_back(skipped_from);
}

void append_block(int index, const TransformerStack& stack, LayerChain& chain) {
  const auto name = [index](const char* part) { return fmt::format("block{}_{}", index, part); };
  const int block_input = last(chain);
  append_norm(name("norm1"), chain);
  append_dense(name("qkv"), 3 * stack.width, chain);
  Layer& attention = begin(name("attention"), LayerKind::attention, last(chain), chain);
  attention.heads = stack.heads;
  attention.causal = stack.causal;
  complete_attention(attention);
  append_dense(name("projection"), stack.width, chain);
  append_add(name("add1"), block_input, chain);
  const int middle = last(chain);
  append_norm(name("norm2"), chain);
  append_dense(name("expand"), stack.expansion * stack.width, chain);
  begin(name("gelu"), LayerKind::gelu, last(chain), chain);
  append_dense(name("contract"), stack.width, chain);
  append_add(name("add2"), middle, chain);
}

}  // namespace

TransformerStack read_transformer_stack(const YamlValue& value) {
  const YamlMap yaml = read_map(value, transformer_stack_keys());
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

Shape transformer_input(const TransformerStack& stack) {
  return {stack.sequence, stack.width};
}

std::vector<Layer> transformer_layers(const TransformerStack& stack) {
  LayerChain chain{transformer_input(stack), {}};
  for (int i = 0; i < stack.layers; ++i) append_block(i, stack, chain);
  append_norm("final_norm", chain);
  complete_dense(stack.vocabulary, false, begin("vocabulary", LayerKind::dense, last(chain), chain));
  begin("loss", LayerKind::softmax_cross_entropy, last(chain), chain).output = {1};
  return std::move(chain.layers);
}

}  // namespace stepcast
