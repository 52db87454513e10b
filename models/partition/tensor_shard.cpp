#include "models/partition/tensor_shard.hpp"

#include <fmt/format.h>

#include <algorithm>

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

std::optional<LayerShare> share_of(const Layer& layer, const LayerExchange& exchange, int ways, int place) {
  using Form = LayerShare::Form;
  if (!exchange.after_backward.empty()) return LayerShare{Form::columns, {}};
  if (exchange.after_forward.empty()) return std::nullopt;
  if (layer.kind == LayerKind::dense) return LayerShare{Form::rows, {}};
  return LayerShare{Form::classes, rows_at(layer.input.back(), ways, place)};
}

bool attention_reads(const Model& model, std::size_t layer) {
  return std::ranges::any_of(model.layers, [layer](const Layer& reader) {
    return reader.kind == LayerKind::attention && reader.inputs.front() == static_cast<int>(layer);
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
    const int runs = attention_reads(model, i) ? 3 : 1;
    auto& arrays = part.arrays.emplace_back();
    for (std::size_t k = 0; k < model.layers[i].parameters.size(); ++k) {
      arrays.push_back(
          array_part(model.layers[i].parameters[k], part.model.layers[i].parameters[k], ways, place, runs));
    }
  }
  return part;
}

std::string part_problem(const Model& model, const ShardedModel& sharded) {
  for (std::size_t i = 0; i < sharded.part.layers.size(); ++i) {
    const Layer& layer = sharded.part.layers[i];
    if (layer.kv_heads > 0 || layer.weight_of >= 0 ||
        (layer.kind == LayerKind::embedding && !sharded.exchanges[i].after_forward.empty()))
      return fmt::format("there is no kernel for a part of layer {} ({})", layer.name, to_string(layer.kind));
    if (layer.kind == LayerKind::dropout && layer.output != model.layers[i].output)
      return fmt::format("a part of layer {} (dropout) would drop other elements", layer.name);
    for (const int from : layer.inputs) {
      const Shape& read =
          from < 0 ? sharded.part.input : sharded.part.layers[static_cast<std::size_t>(from)].output;
      if (read != layer.input)
        return fmt::format("layer {} ({}) reads what other devices have", layer.name, to_string(layer.kind));
    }
  }
  return "";
}

std::vector<float> extract_part(const std::vector<float>& whole, const SharedPart& part, std::size_t layer,
                                std::size_t array) {
  std::vector<float> own(static_cast<std::size_t>(part.model.layers[layer].parameters[array].elements()));
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
