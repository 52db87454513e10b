#include "models/partition/layer_partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "models/network/layer.hpp"
#include "models/network/model.hpp"

namespace stepcast {
namespace {

std::int64_t largest_share(std::int64_t size, int ways) {
  return (size + ways - 1) / ways;
}

bool has_filters(LayerKind kind) {
  return kind == LayerKind::convolution || kind == LayerKind::locally_connected || kind == LayerKind::dense;
}

bool mixes_features(LayerKind kind) {
  switch (kind) {
    case LayerKind::layer_norm:
    case LayerKind::rms_norm:
    case LayerKind::scale:
    case LayerKind::slice:
    case LayerKind::state_space:
    case LayerKind::lstm:
    case LayerKind::gru:
    case LayerKind::rotary_embedding:
    case LayerKind::attention:
    case LayerKind::experts:
    case LayerKind::embedding:
    case LayerKind::position_embedding:
    case LayerKind::class_token:
    case LayerKind::swiglu:
      return true;
    default:
      return false;
  }
}

/// The number of channels of a map, or of features of any other shape.
std::int64_t& channels(Shape& shape) {
  return shape.size() > 2 ? shape.front() : shape.back();
}

/// The first dimension of a weight counts the filters, except in locally connected layers, where the
/// positions come first.
void share_parameters(Layer& layer, int ways) {
  for (ParameterTensor& tensor : layer.parameters) {
    const std::size_t filters = layer.kind == LayerKind::locally_connected ? layer.window.kernel.size() : 0;
    tensor.shape[filters] = largest_share(tensor.shape[filters], ways);
  }
}

void share_layer(Layer& layer, int ways) {
  if (is_loss(layer.kind)) {
    if (layer.kind != LayerKind::softmax_cross_entropy)
      channels(layer.input) = largest_share(channels(layer.input), ways);
    return;
  }
  if (!has_filters(layer.kind)) channels(layer.input) = largest_share(channels(layer.input), ways);
  channels(layer.output) = largest_share(channels(layer.output), ways);
  share_parameters(layer, ways);
}

}  // namespace

bool reads_all_filters(const Layer& layer) {
  return has_filters(layer.kind) || layer.kind == LayerKind::softmax_cross_entropy;
}

std::string measured_problem(const Model& model) {
  const auto found = std::find_if(model.layers.begin(), model.layers.end(),
                                  [](const Layer& layer) { return layer.kind == LayerKind::measured; });
  return found == model.layers.end()
             ? ""
             : fmt::format(
                   "layer {} is of kind measured: its times are those of the whole layer, so it cannot "
                   "be partitioned",
                   found->name);
}

ShardedModel shard_filters(const Model& model, int ways) {
  ShardedModel sharded{model, {}, {}};
  sharded.exchanges.resize(model.layers.size());
  sharded.summed_in_group.assign(model.layers.size(), false);
  if (ways == 1) return sharded;
  const std::vector<bool> backward = backward_data_needed(model);
  std::set<int> gathered;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    share_layer(sharded.part.layers[i], ways);
    const int input = layer.inputs.front();
    if (!reads_all_filters(layer) || input < 0 || !gathered.insert(input).second) continue;
    const double whole = elements(layer.input);
    sharded.exchanges[i].before_forward.push_back({Exchange::Kind::all_gather, whole});
    // Every device has the whole input of a loss, and so its whole gradient.
    if (backward[i] && !is_loss(layer.kind))
      sharded.exchanges[i].after_backward.push_back({Exchange::Kind::reduce_scatter, whole});
  }
  return sharded;
}

std::string filter_problem(const Model& model, int ways) {
  if (ways == 1) return "";
  if (std::string problem = measured_problem(model); !problem.empty()) return problem;
  for (const Layer& layer : model.layers) {
    if (mixes_features(layer.kind))
      return fmt::format("layer {} ({}) mixes features and cannot be partitioned by filters", layer.name,
                         to_string(layer.kind));
    if (layer.groups > 1)
      return fmt::format("layer {} is a convolution with groups, which filter parallelism does not partition",
                         layer.name);
    Shape output = layer.output;
    if (has_filters(layer.kind) && channels(output) < ways)
      return fmt::format("layer {} has {} filters for {} devices", layer.name, channels(output), ways);
  }
  return "";
}

namespace {

enum class Role { whole, columns, inside, rows, loss, table, experts };

/// Layers that one device can compute for its own heads or hidden units.
bool stays_inside(LayerKind kind) {
  return kind == LayerKind::attention || kind == LayerKind::rotary_embedding || kind == LayerKind::gelu ||
         kind == LayerKind::silu || kind == LayerKind::swiglu || kind == LayerKind::dropout;
}

/// For each layer, the only layer that reads its output; -1: none or several.
std::vector<int> only_readers(const Model& model) {
  const std::vector<int> count = consumers(model);
  std::vector<int> readers(model.layers.size(), -1);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    for (const int input : model.layers[i].inputs) {
      if (input < 0 || count[input] != 1) continue;
      readers[input] = i;
    }
  }
  return readers;
}

/// A table of words; the few rows of token types are not worth an exchange.
bool is_vocabulary(const Layer& layer) {
  return layer.kind == LayerKind::embedding &&
         layer.parameters.front().shape.front() > layer.parameters.front().shape.back();
}

/// True for the layer that makes queries, keys and values of latent attention.
bool makes_latent(const Layer& layer) {
  return layer.kind == LayerKind::rotary_embedding && layer.inputs.size() > 1;
}

/// Sets the roles of the layers from dense layer `first` to the dense layer that closes the block, if there
/// is one, or to the loss.
void set_block(const Model& model, const std::vector<int>& readers, std::size_t first,
               std::vector<Role>& found) {
  int last = readers[first];
  const auto kind = [&] { return model.layers[last].kind; };
  if (last >= 0 && makes_latent(model.layers[last]) && std::cmp_equal(model.layers[last].inputs[2], first))
    return;  // each device computes the keys of all heads
  if (last >= 0 && kind() == LayerKind::softmax_cross_entropy) {
    found[first] = Role::columns;
    found[last] = Role::loss;
    return;
  }
  std::vector<std::size_t> inside;
  for (; last >= 0 && stays_inside(kind()); last = readers[last]) inside.push_back(last);
  if (inside.empty() || last < 0 || kind() != LayerKind::dense) return;
  found[first] = Role::columns;
  for (const std::size_t layer : inside) found[layer] = Role::inside;
  found[last] = Role::rows;
}

/// The role of each layer in the partition. A dense layer before attention or an activation of hidden units
/// is partitioned by output columns, and the dense layer after them by input rows; a dense layer before the
/// softmax by columns; experts by their hidden units; tables of words by words.
std::vector<Role> roles(const Model& model) {
  std::vector<Role> found(model.layers.size(), Role::whole);
  const std::vector<int> readers = only_readers(model);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    if (layer.kind == LayerKind::dense && found[i] == Role::whole) set_block(model, readers, i, found);
    if (layer.kind == LayerKind::experts) found[i] = Role::experts;
    if (is_vocabulary(layer)) found[i] = Role::table;
  }
  return found;
}

/// Weights {experts, 2 x hidden, features} and {experts, features, hidden}; every device has the router.
void share_experts(Layer& layer, int ways) {
  layer.hidden /= ways;
  layer.parameters[1].shape[1] /= ways;
  layer.parameters[2].shape[2] /= ways;
}

void share_layer(Layer& layer, Role role, int ways) {
  if (role == Role::whole) return;
  if (role == Role::experts) return share_experts(layer, ways);
  const auto share = [ways](std::int64_t& size) { size = (size + ways - 1) / ways; };
  if (role == Role::table) return share(layer.parameters.front().shape.front());
  if (role != Role::columns) share(layer.input.back());
  if (role == Role::columns || role == Role::inside) share(layer.output.back());
  layer.heads /= ways;
  layer.kv_heads /= ways;
  for (ParameterTensor& tensor : layer.parameters) {
    if (role == Role::columns) share(tensor.shape.front());
    if ((role == Role::rows || role == Role::inside) && tensor.shape.size() == 2) share(tensor.shape.back());
  }
}

LayerExchange exchange_of(const Layer& layer, Role role) {
  LayerExchange exchange;
  const Exchange::Kind sum = Exchange::Kind::all_reduce;
  const bool output = role == Role::rows || role == Role::experts || role == Role::table;
  if (output) exchange.after_forward.push_back({sum, static_cast<double>(elements(layer.output))});
  if (role == Role::columns || role == Role::experts)
    exchange.after_backward.push_back({sum, static_cast<double>(elements(layer.input))});
  // Each device has the gradient of the keys of all heads by its own heads.
  if (role == Role::inside && makes_latent(layer))
    exchange.after_backward.push_back({sum, static_cast<double>(layer.input.front() * layer.shared_key)});
  // The loss sums the exponentials and the score of the target over the devices, for every token.
  if (role == Role::loss)
    exchange.after_forward.push_back(
        {sum, 2 * static_cast<double>(elements(layer.input)) / layer.input.back()});
  return exchange;
}

/// The number and the name of the units of a layer inside a block that are divided among the devices.
std::pair<std::int64_t, const char*> shared_units(const Layer& layer) {
  if (layer.kind == LayerKind::experts) return {layer.hidden, "hidden units"};
  if (layer.kind != LayerKind::attention && layer.kind != LayerKind::rotary_embedding)
    return {layer.output.back(), "features"};
  return layer.kv_heads > 0 ? std::pair{layer.kv_heads, "heads of keys and values"}
                            : std::pair{layer.heads, "heads"};
}

}  // namespace

ShardedModel shard_tensor(const Model& model, int ways) {
  ShardedModel sharded{model, {}, {}};
  sharded.exchanges.resize(model.layers.size());
  sharded.summed_in_group.assign(model.layers.size(), false);
  if (ways == 1) return sharded;
  const std::vector<Role> role = roles(model);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    share_layer(sharded.part.layers[i], role[i], ways);
    sharded.exchanges[i] = exchange_of(model.layers[i], role[i]);
  }
  return sharded;
}

std::string tensor_problem(const Model& model, int ways) {
  if (ways == 1) return "";
  const std::vector<Role> role = roles(model);
  bool any = false;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    if (role[i] != Role::inside && role[i] != Role::experts) continue;
    any = true;
    const auto [shared, unit] = shared_units(layer);
    if (shared % ways == 0) continue;
    return fmt::format("layer {} has {} {}, which {} devices cannot share evenly", layer.name, shared, unit,
                       ways);
  }
  if (any) return "";
  const std::string measured = measured_problem(model);
  return "the network has no transformer blocks" + (measured.empty() ? "" : "; " + measured);
}

namespace {

/// Indices of the first layer of each hidden layer of a block, which is the sequence dense, gelu, dense.
std::vector<std::size_t> hidden_layers(const Model& model) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i + 2 < model.layers.size(); ++i) {
    const bool row = model.layers[i].kind == LayerKind::dense &&
                     model.layers[i + 1].kind == LayerKind::gelu &&
                     model.layers[i + 2].kind == LayerKind::dense;
    if (row && model.layers[i].output.size() == 2) found.push_back(i);
  }
  return found;
}

/// Tokens that the experts of a device process: its own number of tokens, times `top`, times the capacity
/// factor.
void make_expert(Layer& layer, const Experts& experts) {
  const double rows =
      std::ceil(static_cast<double>(layer.input.front()) * experts.top * experts.capacity_factor);
  layer.input.front() = layer.output.front() = static_cast<std::int64_t>(rows);
  for (ParameterTensor& tensor : layer.parameters) tensor.shape.front() *= experts.count / experts.ways;
}

/// Puts experts in the place of the hidden layer of a block. @param first  of its three layers
void replace_hidden(const Experts& experts, std::size_t first, ShardedModel& sharded) {
  for (std::size_t i = first; i < first + 3; ++i) {
    make_expert(sharded.part.layers[i], experts);
    sharded.summed_in_group[i] = false;
  }
  if (experts.ways == 1) return;
  const double tokens = elements(sharded.part.layers[first].input);
  const Exchange exchange{Exchange::Kind::all_to_all, tokens, Exchange::Axis::expert};
  sharded.exchanges[first].before_forward.push_back(exchange);
  sharded.exchanges[first].after_backward.push_back(exchange);
  sharded.exchanges[first + 2].after_forward.push_back(exchange);
  sharded.exchanges[first + 2].before_backward.push_back(exchange);
}

/// Partitions a layer of kind `experts`. Every device has the router.
void share_own_experts(const Experts& experts, std::size_t index, ShardedModel& sharded) {
  Layer& layer = sharded.part.layers[index];
  layer.coefficient = experts.capacity_factor;
  layer.experts /= experts.ways;
  layer.parameters[1].shape.front() /= experts.ways;
  layer.parameters[2].shape.front() /= experts.ways;
  sharded.summed_in_group[index] = false;
  if (experts.ways == 1) return;
  const double rows = expert_rows(layer) * layer.input.back();
  const double copies = experts.deep_ep && experts.nodes > 0
                            ? std::min(1.0, static_cast<double>(experts.nodes) / layer.top)
                            : 1;
  const Exchange back{Exchange::Kind::all_to_all, copies * rows / experts.token_ways, Exchange::Axis::expert,
                      experts.deep_ep};
  Exchange tokens = back;
  tokens.elements *= experts.dispatched;
  LayerExchange& exchange = sharded.exchanges[index];
  if (experts.token_ways > 1) {
    const Exchange gather{Exchange::Kind::all_gather, rows}, scatter{Exchange::Kind::reduce_scatter, rows};
    exchange = {{tokens, gather}, {scatter, back}, {tokens, gather}, {scatter, back}};
    return;
  }
  exchange.before_forward.insert(exchange.before_forward.begin(), tokens);
  exchange.after_forward.insert(exchange.after_forward.begin(), back);
  exchange.before_backward.insert(exchange.before_backward.begin(), tokens);
  exchange.after_backward.insert(exchange.after_backward.begin(), back);
}

}  // namespace

std::vector<std::size_t> expert_layers(const Model& model) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    if (model.layers[i].kind == LayerKind::experts) found.push_back(i);
  }
  return found;
}

void share_experts(const Experts& experts, ShardedModel& sharded) {
  sharded.summed_in_group.assign(sharded.part.layers.size(), true);
  const std::vector<std::size_t> own = expert_layers(sharded.part);
  sharded.shares_experts = experts.ways > 1;
  for (const std::size_t layer : own) share_own_experts(experts, layer, sharded);
  if (!own.empty()) return;
  const std::vector<std::size_t> hidden = hidden_layers(sharded.part);
  for (std::size_t block = 0; block < hidden.size(); ++block) {
    if ((block + 1) % experts.every == 0) replace_hidden(experts, hidden[block], sharded);
  }
}

std::string expert_problem(const Model& model, const Experts& experts) {
  const std::size_t blocks = hidden_layers(model).size();
  const bool own = !expert_layers(model).empty();
  if (!own && blocks == 0) return "the network has no transformer blocks";
  if (!own && static_cast<std::size_t>(experts.every) > blocks)
    return fmt::format("{} blocks, so none of every {} has experts", blocks, experts.every);
  if (experts.count % experts.ways != 0)
    return fmt::format("{} devices cannot share {} experts evenly", experts.ways, experts.count);
  if (experts.top > experts.count)
    return fmt::format("a token cannot go to {} of {} experts", experts.top, experts.count);
  return "";
}

}  // namespace stepcast
