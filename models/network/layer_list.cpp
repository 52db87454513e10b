#include "models/network/layer_list.hpp"

#include <fmt/format.h>

#include <map>

#include "core/expects.hpp"
#include "core/fields.hpp"
#include "models/network/layer.hpp"

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
  layer.input = input == kNetworkInput ? chain.input : chain.layers[input].output;
  layer.output = layer.input;
  return chain.layers.emplace_back(std::move(layer));
}

int last(const LayerChain& chain) {
  return chain.layers.size() - 1;
}

void append_norm(const std::string& name, LayerChain& chain) {
  complete_layer_norm(begin(name, LayerKind::layer_norm, last(chain), chain));
}

void append_dense(const std::string& name, std::int64_t units, LayerChain& chain) {
  complete_dense(units, true, begin(name, LayerKind::dense, last(chain), chain));
}

void append_dropout(const std::string& name, double rate, LayerChain& chain) {
  if (rate > 0) begin(name, LayerKind::dropout, last(chain), chain).coefficient = rate;
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
  attention.coefficient = stack.dropout;
  complete_attention(attention);
  append_dense(name("projection"), stack.width, chain);
  append_dropout(name("projection_dropout"), stack.dropout, chain);
  append_add(name("add1"), block_input, chain);
  const int middle = last(chain);
  append_norm(name("norm2"), chain);
  append_dense(name("expand"), stack.expansion * stack.width, chain);
  begin(name("gelu"), LayerKind::gelu, last(chain), chain);
  append_dense(name("contract"), stack.width, chain);
  append_dropout(name("contract_dropout"), stack.dropout, chain);
  append_add(name("add2"), middle, chain);
}

void check_stack(const YamlMap& map, TransformerStack& stack) {
  if (stack.width % stack.heads != 0)
    map.at("width").refuse(fmt::format("expected a multiple of {} heads, got {}", stack.heads, stack.width));
}

const Fields<TransformerStack>& stack_fields() {
  using Stack = TransformerStack;
  const Default count = required("an integer >= 1");
  static const Fields<Stack> fields{
      {field("layers", &Stack::layers, integer(1, 10'000), count, "number of blocks"),
       field("width", &Stack::width, integer(1, 1'000'000), count,
             "features of a token, a multiple of `heads`"),
       field("heads", &Stack::heads, integer(1, 100'000), count, "attention heads"),
       field("sequence", &Stack::sequence, integer(1, 10'000'000), count, "tokens of a sample"),
       field("vocabulary", &Stack::vocabulary, integer(1, 100'000'000), count, "outputs of the last layer"),
       field("expansion", &Stack::expansion, integer(1, 1000), "hidden units divided by `width`"),
       field("causal", &Stack::causal, boolean(), "causal attention"),
       field("dropout", &Stack::dropout, number(0, 0.999),
             "share that attention and both halves of a block drop")},
      check_stack};
  return fields;
}

}  // namespace

const Keys& transformer_stack_keys() {
  return stack_fields().keys();
}

TransformerStack read_transformer_stack(const YamlValue& value) {
  TransformerStack stack;
  read_mapping(value, stack_fields(), stack);
  return stack;
}

Shape transformer_input(const TransformerStack& stack) {
  return {stack.sequence, stack.width};
}

LayerList transformer_layers(const TransformerStack& stack) {
  LayerChain chain{transformer_input(stack), {}};
  std::vector<LayerBlock> blocks;
  for (int i = 0; i < stack.layers; ++i) {
    const int first = chain.layers.size();
    append_block(i, stack, chain);
    blocks.push_back({first, static_cast<int>(chain.layers.size())});
  }
  append_norm("final_norm", chain);
  complete_dense(stack.vocabulary, false, begin("vocabulary", LayerKind::dense, last(chain), chain));
  begin("loss", LayerKind::softmax_cross_entropy, last(chain), chain).output = {1};
  return {std::move(chain.layers), std::move(blocks)};
}

namespace {

constexpr std::size_t kMostLayers = 100'000;
constexpr double kMostElements = 1e15;

using Indices = std::map<std::string, int>;  // indices of the layers read so far, by name

/// Names and shapes that the reader knows at one place of the list.
struct Scope {
  Shape input;                     ///< of the network
  std::vector<Layer> layers;       ///< all layers above
  std::vector<YamlValue> values;   ///< their YAML
  Indices names;                   ///< their indices
  Indices own;                     ///< inside a block: layers of the same repetition, and `previous`
  std::string prefix;              ///< inside a block: of the layers' names
  std::vector<LayerBlock> blocks;  ///< the repetitions
};

const Shape& shape_of(int index, const Scope& scope) {
  expects(index == kNetworkInput || static_cast<std::size_t>(index) < scope.layers.size(), "a layer above");
  return index == kNetworkInput ? scope.input : scope.layers[index].output;
}

int index_of(const YamlValue& value, const Scope& scope) {
  const std::string name = value.text();
  for (const Indices* indices : {&scope.own, &scope.names}) {
    const auto found = indices->find(name);
    if (found != indices->end()) return found->second;
  }
  value.expected("the name of a layer above, or input");
}

std::vector<int> read_inputs(const YamlMap& yaml, const Scope& scope) {
  const auto inputs = yaml.maybe("inputs");
  if (!inputs) return {static_cast<int>(scope.layers.size()) - 1};
  std::vector<int> result;
  for (const YamlValue& input : inputs->list()) {
    const int index = index_of(input, scope);
    if (index != kNetworkInput && is_loss(scope.layers[index].kind)) {
      input.refuse("expected a layer that is not a loss: a loss ends the network");
    }
    result.push_back(index);
  }
  return result;
}

/// True if the shapes differ at most in their first dimension.
bool concatenates(const Shape& a, const Shape& b) {
  return a.size() == b.size() && std::equal(a.begin() + 1, a.end(), b.begin() + 1);
}

void check_inputs(const YamlValue& value, const Layer& layer, const Scope& scope) {
  const std::size_t count = layer.inputs.size();
  if (layer.kind == LayerKind::measured) {
    if (count == 0) value.refuse("a layer of kind measured takes one or more inputs, got 0");
    return;
  }
  if (layer.kind == LayerKind::attention || layer.kind == LayerKind::rotary_embedding) {
    const bool attention = layer.kind == LayerKind::attention;
    if (count != 1 && count != 3)
      value.refuse(
          fmt::format("a layer of kind {} takes one input, or queries, {}; got {}", to_string(layer.kind),
                      attention ? "keys and values" : "keys with values, and keys of all heads", count));
    return;
  }
  const bool joins = layer.kind == LayerKind::concatenate;
  const bool several = layer.kind == LayerKind::add || joins;
  if (several ? count < 2 : count != 1) {
    value.refuse(fmt::format("a layer of kind {} takes {}, got {}", to_string(layer.kind),
                             several ? "two or more inputs" : "one input", count));
  }
  for (const int input : layer.inputs) {
    const Shape& shape = shape_of(input, scope);
    if (joins ? concatenates(shape, layer.input) : shape == layer.input) continue;
    value.refuse(fmt::format("expected inputs of {}, got {} and {}",
                             joins ? "shapes that differ only in the first dimension" : "equal shapes",
                             to_string(layer.input), to_string(shape)));
  }
}

/// Completes a dense layer that multiplies with the weight of an earlier layer.
void tie_weight(const YamlValue& name, const Scope& scope, Layer& layer) {
  const int owner = index_of(name, scope);
  const Shape own = layer.parameters.front().shape;
  const std::vector<ParameterTensor> tensors =
      owner < 0 ? std::vector<ParameterTensor>{} : scope.layers[owner].parameters;
  if (tensors.empty() || tensors.front().shape != own) {
    name.refuse(fmt::format("expected a layer with a weight of {}, got \"{}\"", to_string(own), name.text()));
  }
  layer.weight_of = owner;
  layer.parameters.erase(layer.parameters.begin());
}

void complete_joined(const Scope& scope, Layer& layer) {
  std::int64_t sum = 0;
  for (const int input : layer.inputs) sum += shape_of(input, scope).front();
  complete_concatenate(sum, layer);
}

/// Completes attention whose queries, keys and values are three inputs, the latter two of any sequence.
void complete_three_inputs(const YamlValue& value, const Scope& scope, Layer& layer) {
  const Shape &keys = shape_of(layer.inputs[1], scope), values = shape_of(layer.inputs[2], scope);
  const std::int64_t kv_heads = layer.kv_heads > 0 ? layer.kv_heads : layer.heads;
  const std::int64_t features = layer.input.back() / layer.heads * kv_heads;
  const std::int64_t of_values = layer.value_width > 0 ? layer.value_width * kv_heads : features;
  if (keys.size() != 2 || keys.back() != features || values != Shape{keys.front(), of_values})
    value.refuse(fmt::format("expected keys and values of time x {}{}, got {} and {}", features,
                             of_values == features ? "" : fmt::format(" and {}", of_values), to_string(keys),
                             to_string(values)));
  if (layer.causal && keys.front() != layer.input.front())
    value.refuse("causal attention takes as many keys as queries");
  layer.keys = keys.front();
}

/// Completes a rotary embedding that makes queries, keys and values of latent attention.
void complete_latent_inputs(const YamlValue& value, const Scope& scope, Layer& layer) {
  const Shape &rest = shape_of(layer.inputs[1], scope), shared = shape_of(layer.inputs[2], scope);
  const std::int64_t head = layer.input.back() / layer.heads;
  if (layer.value_width == 0) layer.value_width = head;
  if (layer.kv_heads > 0) value.refuse("a rotary_embedding of three inputs has no kv_heads");
  const bool fits = rest.size() == 2 && shared.size() == 2 && rest.front() == layer.input.front() &&
                    shared.front() == layer.input.front() && shared.back() <= head &&
                    rest.back() == layer.heads * (head - shared.back() + layer.value_width);
  if (!fits)
    value.refuse(fmt::format(
        "expected keys with values of time x {} x ({} - R + {}) and keys of all heads of time x R, "
        "got {} and {}",
        layer.heads, head, layer.value_width, to_string(rest), to_string(shared)));
  complete_latent_rotary(shared.back(), layer);
}

Layer read_one(const YamlValue& value, const Scope& scope) {
  const YamlMap yaml = value.any_map();
  if (yaml.has("repeat")) yaml.at("repeat").refuse("a block inside a block cannot be repeated");
  Layer layer;
  layer.name = scope.prefix + yaml.at("name", "the layer's name").text();
  layer.kind = static_cast<LayerKind>(yaml.at("kind", "a layer kind").one_of(layer_kind_words()));
  layer.inputs = read_inputs(yaml, scope);
  if (!layer.inputs.empty()) layer.input = shape_of(layer.inputs.front(), scope);
  check_inputs(value, layer, scope);
  read_layer(value, layer);
  if (layer.kind == LayerKind::concatenate) complete_joined(scope, layer);
  if (layer.kind == LayerKind::attention && layer.inputs.size() > 1)
    complete_three_inputs(value, scope, layer);
  if (layer.kind == LayerKind::rotary_embedding && layer.inputs.size() > 1)
    complete_latent_inputs(value, scope, layer);
  if (yaml.has("weight_of")) tie_weight(yaml.at("weight_of"), scope, layer);
  check_size(value, layer.output);
  for (const ParameterTensor& tensor : layer.parameters) check_size(value, tensor.shape);
  return layer;
}

void append_layer(const YamlValue& value, Scope& scope) {
  if (scope.layers.size() >= kMostLayers) value.refuse(fmt::format("more than {} layers", kMostLayers));
  Layer layer = read_one(value, scope);
  const int index = scope.layers.size();
  const std::string own_name = layer.name.substr(scope.prefix.size());
  const bool in_block = !scope.prefix.empty();
  if ((in_block && !scope.own.emplace(own_name, index).second) ||
      !scope.names.emplace(layer.name, index).second) {
    value.refuse(fmt::format("two layers are called {}", layer.name));
  }
  scope.layers.push_back(std::move(layer));
  scope.values.push_back(value);
}

/// A block of layers that is repeated, as written.
struct RepeatedBlock {
  std::int64_t repeat = 1;
  std::string name;
};

const Fields<RepeatedBlock>& repeat_fields() {
  static const Fields<RepeatedBlock> fields{
      field("repeat", &RepeatedBlock::repeat, integer(1, 10'000), required("a value"),
            "number of repetitions"),
      field("name", &RepeatedBlock::name, text(), required("the prefix of the layers' names"),
            "the layers of repetition I (from 0) are called `nameI_LAYER`"),
      field<RepeatedBlock>({"layers", KeyType::mappings, "required",
                            "layers of the block, which must not contain another block",
                            network_layer_keys})};
  return fields;
}

void append_block(const YamlValue& value, Scope& scope) {
  RepeatedBlock block;
  const YamlMap yaml = read_mapping(value, repeat_fields(), block);
  const YamlValue list = yaml.at("layers", "a list of layers");
  const std::vector<YamlValue> layers = list.list();
  if (layers.empty()) list.expected("at least one layer");
  for (std::int64_t i = 0; i < block.repeat; ++i) {
    scope.prefix = fmt::format("{}{}_", block.name, i);
    const int first = scope.layers.size();
    scope.own = {{"previous", static_cast<int>(scope.layers.size()) - 1}};
    for (const YamlValue& layer : layers) append_layer(layer, scope);
    scope.blocks.push_back({first, static_cast<int>(scope.layers.size())});
  }
  scope.prefix.clear();
  scope.own.clear();
}

void check_all_used(const Scope& scope) {
  std::vector<bool> used(scope.layers.size());
  for (const Layer& layer : scope.layers) {
    for (const int input : layer.inputs) {
      if (input != kNetworkInput) used[input] = true;
    }
  }
  for (std::size_t i = 0; i < used.size(); ++i) {
    const bool ends = i + 1 == used.size() && scope.layers[i].kind == LayerKind::measured;  // a loss, perhaps
    if (used[i] || ends || is_loss(scope.layers[i].kind)) continue;
    scope.values[i].refuse(
        fmt::format("no layer reads the output of {}; end the network with a loss such as "
                    "softmax_cross_entropy",
                    scope.layers[i].name));
  }
}

}  // namespace

const Keys& repeat_keys() {
  return repeat_fields().keys();
}

void check_size(const YamlValue& value, const Shape& shape) {
  double product = 1;
  for (const std::int64_t size : shape) product *= size;
  if (product > kMostElements) value.refuse(fmt::format("an array of {} is too large", to_string(shape)));
}

LayerList read_layers(const YamlValue& list, const Shape& input) {
  const std::vector<YamlValue> items = list.list();
  if (items.empty()) list.expected("at least one layer");
  Scope scope{input, {}, {}, {{"input", kNetworkInput}}, {}, {}, {}};
  for (const YamlValue& item : items) {
    const bool block = item.is(YamlNode::Kind::mapping) && item.any_map().has("repeat");
    block ? append_block(item, scope) : append_layer(item, scope);
  }
  check_all_used(scope);
  return {std::move(scope.layers), std::move(scope.blocks)};
}

}  // namespace stepcast
