#include "models/partition/sequence_partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "models/network/layer.hpp"

namespace stepcast {
namespace {

using Kind = Exchange::Kind;

/// True if the layer computes each token by itself.
bool works_by_token(LayerKind kind) {
  switch (kind) {
    case LayerKind::dense:
    case LayerKind::layer_norm:
    case LayerKind::rms_norm:
    case LayerKind::scale:
    case LayerKind::gelu:
    case LayerKind::silu:
    case LayerKind::swiglu:
    case LayerKind::relu:
    case LayerKind::add:
    case LayerKind::dropout:
    case LayerKind::embedding:
    case LayerKind::position_embedding:
    case LayerKind::rotary_embedding:
    case LayerKind::experts:
      return true;
    default:
      return is_loss(kind);
  }
}

void divide_first(Shape& shape, int ways) {
  if (!shape.empty()) shape.front() /= ways;
}

void divide_layer(Layer& layer, int ways) {
  divide_first(layer.input, ways);
  if (!is_loss(layer.kind)) divide_first(layer.output, ways);
}

bool same_arrays(const Layer& one, const Layer& other) {
  return std::ranges::equal(one.parameters, other.parameters, {}, &ParameterTensor::shape,
                            &ParameterTensor::shape);
}

/// True if every device of the tensor axis computes the whole layer.
bool is_whole(const Layer& layer, const Layer& part) {
  return layer.input == part.input && layer.output == part.output && layer.hidden == part.hidden &&
         same_arrays(layer, part);
}

/// Replaces the all-reduces of a list by reduce-scatters. @returns the all-gathers that undo them
std::vector<Exchange> scatter_sums(std::vector<Exchange>& sums) {
  std::vector<Exchange> gathers;
  for (Exchange& sum : sums) {
    if (sum.kind != Kind::all_reduce) continue;
    sum.kind = Kind::reduce_scatter;
    gathers.push_back({Kind::all_gather, sum.elements});
  }
  return gathers;
}

bool scatters(const std::vector<Exchange>& exchanges) {
  return std::ranges::any_of(exchanges, [](const Exchange& one) {
    return one.kind == Kind::reduce_scatter && one.axis == Exchange::Axis::tensor;
  });
}

}  // namespace

void divide_tokens(const Model& model, int ways, ShardedModel& sharded) {
  sharded.divided_tokens.assign(model.layers.size(), false);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    Layer& layer = sharded.part.layers[i];
    LayerExchange& exchange = sharded.exchanges[i];
    if (is_whole(model.layers[i], layer)) {
      sharded.divided_tokens[i] = true;
      divide_layer(layer, ways);
    } else if (!is_loss(layer.kind)) {
      exchange.before_backward = scatter_sums(exchange.after_forward);
      exchange.before_forward = scatter_sums(exchange.after_backward);
      if (layer.kind != LayerKind::rotary_embedding) exchange.during_backward = exchange.before_forward;
    }
  }
}

Model kept_layers(const ShardedModel& sharded, int ways) {
  Model kept = sharded.part;
  for (std::size_t i = 0; i < kept.layers.size(); ++i) {
    Layer& layer = kept.layers[i];
    if (scatters(sharded.exchanges[i].after_forward)) divide_first(layer.output, ways);
    // The rows of experts follow from their input.
    if (scatters(sharded.exchanges[i].after_backward) && layer.kind != LayerKind::experts)
      divide_first(layer.input, ways);
  }
  return kept;
}

namespace {

/// Elements of keys and values of all tokens of one sample.
double keys_and_values(const Layer& attention, std::int64_t heads) {
  const double both = static_cast<double>(query_features(attention) + attention.output.back());
  return static_cast<double>(attention.input.front()) * heads * (both / attention.heads);
}

/// Adds the exchanges of attention over all tokens. @param attention  before its division
void add_exchanges(const Layer& attention, int ways, ContextExchange how, LayerExchange& exchange) {
  const auto axis = Exchange::Axis::context;
  const double keys =
      keys_and_values(attention, attention.kv_heads > 0 ? attention.kv_heads : attention.heads);
  if (how == ContextExchange::ring) {
    exchange.forward_ring = Exchange{Kind::all_gather, keys, axis};
    exchange.backward_ring = Exchange{Kind::all_gather, 2 * keys, axis};
    exchange.last_share = 1.0 / ways;
  } else if (how == ContextExchange::all_gather) {
    exchange.before_forward.push_back({Kind::all_gather, keys, axis});
    exchange.before_backward.push_back({Kind::all_gather, keys, axis});
    exchange.after_backward.push_back({Kind::reduce_scatter, keys, axis});
  } else if (how == ContextExchange::pass_kv) {
    const double repeated = keys_and_values(attention, attention.heads);
    exchange.forward_ring = exchange.backward_ring = Exchange{Kind::all_gather, repeated, axis};
    exchange.last_share = (ways - 1.0) / ways;
    // Of the `ways` steps of the gradients only the last, after the last part, finds no work beside it. The
    // ring of an all-gather has `ways` - 1 steps; fp32 counts as two elements.
    exchange.after_backward.push_back({Kind::all_gather, 2 * repeated / (ways - 1), axis});
  } else {
    const Exchange input{Kind::all_to_all, static_cast<double>(elements(attention.input)) / ways, axis};
    const Exchange output{Kind::all_to_all, static_cast<double>(elements(attention.output)) / ways, axis};
    exchange.before_forward.push_back(input);
    exchange.after_forward.push_back(output);
    exchange.before_backward.push_back(output);
    exchange.after_backward.push_back(input);
  }
}

/// Gives a device 1/ways of the heads of attention, with all tokens.
void divide_attention(Layer& layer, int ways) {
  const auto share = [ways](std::int64_t& count) { count = (count + ways - 1) / ways; };
  share(layer.input.back());
  share(layer.output.back());
  share(layer.heads);
  share(layer.kv_heads);
}

}  // namespace

void divide_context(int ways, ContextExchange how, ShardedModel& sharded) {
  divide_first(sharded.part.input, ways);
  for (std::size_t i = 0; i < sharded.part.layers.size(); ++i) {
    Layer& layer = sharded.part.layers[i];
    LayerExchange& exchange = sharded.exchanges[i];
    for (auto* list : {&exchange.before_forward, &exchange.after_forward, &exchange.before_backward,
                       &exchange.after_backward, &exchange.during_backward}) {
      for (Exchange& one : *list) one.elements /= ways;
    }
    if (layer.kind == LayerKind::attention) {
      add_exchanges(layer, ways, how, exchange);
      divide_attention(layer, ways);
    } else {
      divide_layer(layer, ways);
    }
  }
}

namespace {

std::string division_problem(const Model& model, int ways) {
  for (const Layer& layer : model.layers) {
    if (!works_by_token(layer.kind) && layer.kind != LayerKind::attention)
      return fmt::format("layer {} ({}) mixes the tokens of a sequence", layer.name, to_string(layer.kind));
    if (layer.input.empty() || layer.input.front() % ways != 0)
      return fmt::format("layer {} has {} tokens, which {} devices cannot share evenly", layer.name,
                         layer.input.empty() ? 0 : layer.input.front(), ways);
  }
  return "";
}

}  // namespace

std::string token_problem(const Model& model, const Model& part, int ways) {
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    if (layer.kind == LayerKind::attention && is_whole(layer, part.layers[i]))
      return fmt::format("layer {} ({}) is not shared and mixes the tokens of a sequence", layer.name,
                         to_string(layer.kind));
  }
  return division_problem(model, ways);
}

std::string context_problem(const Model& part, int ways, ContextExchange how) {
  if (std::string problem = division_problem(part, ways); !problem.empty()) return problem;
  bool any = false;
  for (const Layer& layer : part.layers) {
    if (layer.kind != LayerKind::attention) continue;
    any = true;
    if (layer.keys > 0)
      return fmt::format("layer {} (attention) reads windows or three inputs, which are not divided",
                         layer.name);
    const std::int64_t heads = layer.kv_heads > 0 ? layer.kv_heads : layer.heads;
    const bool by_heads = how == ContextExchange::all_to_all || layer.value_width > 0;
    const std::int64_t shared = by_heads ? heads : layer.output.back();
    if (shared % ways != 0)
      return fmt::format("layer {} has {} {} on a device, which {} devices cannot share evenly", layer.name,
                         shared, by_heads ? "heads of keys" : "features", ways);
  }
  return any ? "" : "the network has no attention";
}

}  // namespace stepcast
