#include "models/partition/tensor_shard.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/network/layer.hpp"
#include "models/partition/layer_partition.hpp"

namespace stepcast {
namespace {

/// Rows of the device at `place`, out of `size` rows. Each device has equally many, the last devices fewer.
Rows rows_at(std::int64_t size, int ways, int place) {
  const std::int64_t each = (size + ways - 1) / ways;
  return {std::min(size, place * each), std::min(size, (place + 1) * each)};
}

std::int64_t row_length(const ParameterTensor& tensor) {
  return tensor.elements() / tensor.shape.front();
}

/// The part of an array at `place`. @param runs  number of equal ranges of rows, each of which is partitioned
ArrayPart array_part(const ParameterTensor& whole, const ParameterTensor& own, int ways, int place,
                     int runs) {
  ArrayPart part{{{0, whole.shape.front()}}, {0, row_length(whole)}};
  if (own.shape.front() != whole.shape.front()) {
    part.rows.clear();
    const std::int64_t run = whole.shape.front() / runs;
    const Rows rows = rows_at(run, ways, place);
    for (int i = 0; i < runs; ++i) part.rows.push_back({i * run + rows.first, i * run + rows.last});
  } else if (own.shape.back() != whole.shape.back()) {
    part.columns = rows_at(whole.shape.back(), ways, place);
  }
  return part;
}

/// The parts of the arrays of a layer. @param runs  see array_part
std::vector<ArrayPart> array_parts(const SharedPart& part, std::size_t layer, int ways, int place, int runs) {
  std::vector<ArrayPart> parts;
  for (std::size_t k = 0; k < part.whole.layers[layer].parameters.size(); ++k)
    parts.push_back(array_part(part.whole.layers[layer].parameters[k], part.model.layers[layer].parameters[k],
                               ways, place, runs));
  return parts;
}

std::optional<LayerShare> share_of(const Layer& layer, const LayerExchange& exchange, int ways, int place) {
  using Form = LayerShare::Form;
  if (!exchange.after_backward.empty()) return LayerShare{Form::columns, {}};
  if (exchange.after_forward.empty()) return std::nullopt;
  if (layer.kind == LayerKind::dense) return LayerShare{Form::rows, {}};
  return LayerShare{Form::classes, rows_at(layer.input.back(), ways, place)};
}

bool attention_reads(const Model& model, std::size_t layer) {
  return std::ranges::any_of(model.layers, [layer](const Layer& reader) {
    return reader.kind == LayerKind::attention && std::cmp_equal(reader.inputs.front(), layer);
  });
}

/// Calls visit(first element of the whole, first element of the part, elements) for each row of the part.
template <class Visit>
void for_each_row(const ParameterTensor& whole, const ArrayPart& part, const Visit& visit) {
  std::int64_t own = 0;
  for (const Rows& run : part.rows) {
    for (std::int64_t row = run.first; row < run.last; ++row, own += part.columns.size())
      visit(row * row_length(whole) + part.columns.first, own, part.columns.size());
  }
}

}  // namespace

SharedPart tensor_shard(const Model& model, int ways, int place) {
  ShardedModel sharded = shard_tensor(model, ways);
  SharedPart part{model, std::move(sharded.part), {}, {}};
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    part.shares.push_back(share_of(model.layers[i], sharded.exchanges[i], ways, place));
    part.arrays.push_back(array_parts(part, i, ways, place, attention_reads(model, i) ? 3 : 1));
  }
  return part;
}

SharedPart expert_shard(const Model& model, int ways, int place) {
  ShardedModel sharded{model, {}, {}};
  sharded.exchanges.resize(model.layers.size());
  share_experts({.ways = ways}, sharded);
  SharedPart part{model, std::move(sharded.part), {}, {}};
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    part.shares.emplace_back();
    if (model.layers[i].kind == LayerKind::experts)
      part.shares.back() = {.form = LayerShare::Form::experts, .ways = ways, .place = place};
    part.arrays.push_back(array_parts(part, i, ways, place, 1));
  }
  return part;
}

namespace {

/// The map that a layer's output was before any flattening, which keeps the order of the elements.
Shape unflattened(const Model& model, int layer) {
  while (true) {
    const Layer& one = model.layers[layer];
    const bool keeps = one.kind == LayerKind::reshape || one.kind == LayerKind::dropout ||
                       (one.parameters.empty() && one.output == one.input);
    if (one.output.size() > 1 || !keeps || one.inputs.front() < 0) return one.output;
    layer = one.inputs.front();
  }
}

GatheredInput make_gathered_input(const Model& model, const Layer& layer, int ways) {
  GatheredInput input;
  input.source = layer.inputs.front();
  input.map = unflattened(model, input.source);
  input.is_partial_sum = !is_loss(layer.kind);
  input.is_first = &layer == &*std::ranges::find_if(model.layers, [&](const Layer& reader) {
    return reads_all_filters(reader) && reader.inputs.front() == input.source;
  });
  const std::size_t channels = input.map.size() > 2 ? 0 : input.map.size() - 1;
  for (int place = 0; place < ways; ++place) {
    auto& box = input.parts.emplace_back();
    for (const std::int64_t size : input.map) box.push_back({0, size});
    box[channels] = rows_at(input.map[channels], ways, place);
  }
  return input;
}

}  // namespace

SharedPart filter_shard(const Model& model, int ways, int place) {
  ShardedModel sharded = shard_filters(model, ways);
  SharedPart part{model, std::move(sharded.part), {}, {}, {}};
  part.shares.resize(model.layers.size());
  part.gathered.resize(model.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    if (ways > 1 && reads_all_filters(layer) && layer.inputs.front() >= 0)
      part.gathered[i] = make_gathered_input(model, layer, ways);
    part.arrays.push_back(array_parts(part, i, ways, place, 1));
  }
  return part;
}

namespace {

std::string filter_layer_problem(const Model& model, const SharedPart& part, std::size_t index, int ways) {
  const Layer& whole = model.layers[index];
  const Layer& own = part.model.layers[index];
  const std::string name = fmt::format("layer {} ({}) ", whole.name, to_string(whole.kind));
  if (whole.kind == LayerKind::softmax_cross_entropy) return "";
  // Targets of a device are adjacent only where its channels are.
  if (is_loss(whole.kind) && unflattened(model, whole.inputs.front()).size() == 2)
    return name + "has targets that devices share";
  if (whole.kind == LayerKind::locally_connected || whole.weight_of >= 0)
    return "there is no kernel for a part of " + name.substr(0, name.size() - 1);
  if (whole.kind == LayerKind::dropout) return fmt::format("a part of {}would drop other elements", name);
  if (whole.kind == LayerKind::reshape && whole.output.size() > 1)
    return name + "reshapes a map that devices share";
  const bool loss = is_loss(whole.kind);
  if (elements(loss ? own.input : own.output) * ways != elements(loss ? whole.input : whole.output))
    return name + fmt::format("has parts of unequal size on {} devices", ways);
  for (std::size_t k = 0; k < own.inputs.size(); ++k) {
    const int from = own.inputs[k];
    if (k == 0 && part.gathered[index]) continue;
    const Shape& read = from < 0 ? model.input : part.model.layers[from].output;
    if (read != own.input) return name + "reads what other devices have";
  }
  return "";
}

}  // namespace

std::string filter_part_problem(const Model& model, int ways) {
  if (ways == 1) return "";
  const SharedPart part = filter_shard(model, ways, 0);
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    std::string problem = filter_layer_problem(model, part, i, ways);
    if (!problem.empty()) return problem;
    const bool by_loss = is_loss(model.layers[i].kind) && part.gathered[i];
    for (std::size_t reader = 0; by_loss && reader < model.layers.size(); ++reader) {
      if (reader != i && std::ranges::count(model.layers[reader].inputs, part.gathered[i]->source) > 0)
        return fmt::format("layer {} is not the only one that reads its input", model.layers[i].name);
    }
  }
  return "";
}

std::string part_problem(const Model& model, const ShardedModel& sharded) {
  for (std::size_t i = 0; i < sharded.part.layers.size(); ++i) {
    const Layer& layer = sharded.part.layers[i];
    if (layer.kv_heads > 0 || layer.value_width > 0 || layer.weight_of >= 0 ||
        (layer.kind == LayerKind::embedding && !sharded.exchanges[i].after_forward.empty()))
      return fmt::format("there is no kernel for a part of layer {} ({})", layer.name, to_string(layer.kind));
    if (layer.kind == LayerKind::dropout && layer.output != model.layers[i].output)
      return fmt::format("a part of layer {} (dropout) would drop other elements", layer.name);
    for (const int from : layer.inputs) {
      const Shape& read = from < 0 ? sharded.part.input : sharded.part.layers[from].output;
      if (read != layer.input)
        return fmt::format("layer {} ({}) reads what other devices have", layer.name, to_string(layer.kind));
    }
  }
  return "";
}

std::vector<float> extract_part(const std::vector<float>& whole, const SharedPart& part, std::size_t layer,
                                std::size_t array) {
  std::vector<float> own(part.model.layers[layer].parameters[array].elements());
  for_each_row(part.whole.layers[layer].parameters[array], part.arrays[layer][array],
               [&](std::int64_t from, std::int64_t to, std::int64_t count) {
                 std::copy_n(whole.begin() + from, count, own.begin() + to);
               });
  return own;
}

void insert_part(const std::vector<float>& own, const SharedPart& part, std::size_t layer, std::size_t array,
                 std::vector<float>& whole) {
  for_each_row(part.whole.layers[layer].parameters[array], part.arrays[layer][array],
               [&](std::int64_t to, std::int64_t from, std::int64_t count) {
                 std::copy_n(own.begin() + from, count, whole.begin() + to);
               });
}

}  // namespace stepcast
