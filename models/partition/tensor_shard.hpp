#pragma once

#include <optional>
#include <vector>

#include "models/network/model.hpp"
#include "models/partition/spatial_shard.hpp"
#include "models/partition/token_division.hpp"

namespace stepcast {

struct ShardedModel;

/// The part of one device in a layer that `shard_tensor` partitions, as kernels need it.
struct LayerShare {
  enum class Form {
    columns,  ///< dense, partitioned by units: the error signal of its input is a partial sum
    rows,     ///< dense, partitioned by inputs: its output, without the bias, is a partial sum
    classes,  ///< softmax_cross_entropy: sums of exponentials and the target's score are partial sums
    tokens,   ///< a layer that depends on the place of its tokens, which are `tokens`: positions, dropout
    queries,  ///< attention of the queries of `tokens` with keys and values of all, which are its second
              ///< input
    experts,  ///< experts: the device has some of them, and rows of tokens go to them
  };

  Form form{};
  Rows classes = {};  ///< classes of the whole layer that the device scores; further classes of its part are
                      ///< padding
  /// Of every sample; of `rows`: those to whose partial sums this device adds the bias; empty: all, in a sum.
  std::vector<Rows> tokens = {};
  std::int64_t whole_tokens = 0;  ///< with Form::tokens: tokens of a whole sample
  int ways = 1, place = 0;        ///< experts: devices that share them, and the place of this one
};

/// The part of an array that a device has. The array is taken as a matrix with one row for each index of its
/// first dimension.
struct ArrayPart {
  std::vector<Rows> rows;  ///< rows of the whole array, one range after the other
  Rows columns;            ///< columns of each of these rows
};

/// An output of which each device has a part, and which a layer reads whole.
struct GatheredInput {
  int source = 0;                        ///< the layer whose output it is
  Shape map;                             ///< of one sample, before any flattening
  std::vector<std::vector<Rows>> parts;  ///< for each device, its box of the map
  bool is_first = true;                  ///< of all layers that read it; it is gathered once for all of them
  /// Whether the error signals of the devices add up; otherwise each device has the whole error signal.
  bool is_partial_sum = true;
};

/// The part that one device has of a network under tensor, filter or model parallelism.
struct SharedPart {
  Model whole, model;
  std::vector<std::optional<LayerShare>> shares;  ///< for each layer
  std::vector<std::vector<ArrayPart>> arrays;     ///< for each parameter array of each layer
  /// For each layer, its first input if that is gathered from all devices; empty: no layer gathers.
  std::vector<std::optional<GatheredInput>> gathered = {};
  /// Its part of every sample in the first layers (machine_shard); none: whole samples.
  std::optional<SpatialShard> spatial = {};
  /// For each layer, what it exchanges with ranks that have other tokens (token_shard); empty: nothing.
  std::vector<std::optional<TokenExchange>> exchanged = {};
  /// For each layer, whether its gradient is summed over ranks that share the layers, because they have
  /// different tokens of it; empty: no layer.
  std::vector<bool> summed = {};
};

/// The gathered input of a layer; null if it has none or there is no part.
inline const GatheredInput* gathered_input(const SharedPart* part, std::size_t layer) {
  const bool any = part != nullptr && !part->gathered.empty() && part->gathered[layer];
  return any ? &*part->gathered[layer] : nullptr;
}

/// The part of device `place` of `ways` devices that share transformer blocks (shard_tensor). The rows of
/// queries, keys and values are each partitioned by heads.
SharedPart tensor_shard(const Model& model, int ways, int place);

/// The part of device `place` of `ways` devices that share filters (shard_filters).
SharedPart filter_shard(const Model& model, int ways, int place);

/// The part of device `place` of `ways` devices that share the experts of each layer of that kind
/// (share_experts). Every device has all other layers, and the routers.
SharedPart expert_shard(const Model& model, int ways, int place);

/// The part of machine `place` of `machines` that share a network (models/partition/layer_partition.hpp,
/// `partition`): its positions of maps and the filters there, and its units of dense layers.
/// @param separate_border  SpatialPartition::separate_border
SharedPart machine_shard(const Model& model, int machines, bool separate_border, int place);

/// The reason why kernels cannot compute the parts of machine_shard. Empty if they can.
std::string machine_part_problem(const Model& model, int machines);

/// The reason why kernels cannot compute the parts of filter_shard, such as parts of unequal size. Empty if
/// they can.
std::string filter_part_problem(const Model& model, int ways);

/// The reason why kernels cannot compute parts of this network, such as a layer that reads values of another
/// device. Empty if they can.
std::string part_problem(const Model& model, const ShardedModel& sharded);

/// Extracts the part of the device from a parameter array of the whole network, in row-major order. Padding
/// is 0.
std::vector<float> extract_part(const std::vector<float>& whole, const SharedPart& part, std::size_t layer,
                                std::size_t array);
/// Writes the part of the device back into the whole array.
void insert_part(const std::vector<float>& own, const SharedPart& part, std::size_t layer, std::size_t array,
                 std::vector<float>& whole);

}  // namespace stepcast
