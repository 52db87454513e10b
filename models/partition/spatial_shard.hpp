#pragma once

#include <string>
#include <vector>

#include "models/partition/spatial_partition.hpp"

namespace stepcast {

/// Rows of one layer on one device of a spatial partition, along one dimension. Row numbers are those of the
/// whole map.
struct ShardRows {
  Rows in, out;    ///< the device's rows of the input and of the output
  Rows read;       ///< rows of the input that `out` reads; for a max pool, that `reading` reads
  Rows reading;    ///< rows of the output that read `in`; for a max pool, also `out`
  Rows read_back;  ///< rows of the input that `reading` reads
  Halo pad;        ///< padding rows beyond the map that the outputs of the device read
  Halo pad_in;     ///< rows by which the windows of `reading` reach beyond `in`; `before` is negative if they
                   ///< begin after the first row of `in`
  Halo pad_back;   ///< rows by which the windows of `reading` reach beyond `read_back`
  SlidingWindow window;  ///< of the whole map
  Rows inner;            ///< rows of the output whose windows read only `in`
  Rows inner_back;       ///< rows of the input that only `out` reads
};

/// Rows of the output along one dimension, the rows of the input that their windows read, and the padding
/// rows beyond the map that they read.
struct WindowRows {
  Rows outputs, read;
  Halo pad;
};

/// The rows that `outputs` read. @param held  rows of the map that are in memory
WindowRows window_rows(const SlidingWindow& window, const Rows& outputs, const Rows& held);
/// The outputs, out of ShardRows::reading, that read these rows of the input, and all that they read.
WindowRows window_rows_reading(const ShardRows& shard, const Rows& inputs);

/// The rows that both have, which may be none (size <= 0).
Rows common(const Rows& a, const Rows& b);

/// A box of rows cut into its interior, which does not depend on halos, and the boxes of its border. Together
/// they are the whole box, and no two overlap.
struct SeparatedBox {
  std::vector<Rows> interior;             ///< may hold no rows
  std::vector<std::vector<Rows>> border;  ///< the boxes before and after the interior along each dimension
};
SeparatedBox separate_border(const std::vector<Rows>& box, const std::vector<Rows>& inner);

/// One entry for each spatial dimension. Empty for layers that are not maps or not partitioned.
using LayerShardRows = std::vector<ShardRows>;

/// Rows of a layer on the device at grid coordinates `place`.
LayerShardRows shard_rows(const Layer& layer, const SpatialPartition& partition,
                          const std::vector<int>& place);

/// True if any device of the group reads rows of a neighbour in this layer.
bool reads_neighbours(const Layer& layer, const SpatialPartition& partition);

/// True if all rows of `inner` belong to `outer`.
bool within(const Rows& inner, const Rows& outer);

/// Padding of a layer that reads no rows of neighbours: the rows that it reads beyond its own, which are
/// beyond the map.
Halo pad_of_own(const ShardRows& rows);

/// The part of a spatially partitioned network that one device computes. Windows are padded only at the ends
/// of the map.
struct SpatialShard {
  Model model;
  /// For each layer; empty unless some device of the group reads rows of a neighbour.
  std::vector<LayerShardRows> rows;
  std::vector<double> share;     ///< for each layer, share of the elements of all samples of the group
  bool separate_border = false;  ///< SpatialPartition::separate_border
};

/// The part of device `device`.
SpatialShard spatial_shard(const Model& model, const SpatialPartition& partition, int device);

/// What a device receives from one neighbour.
struct ReceivedHalo {
  std::size_t layer;
  bool errors;  ///< true: rows of the error signal of the layer's output; false: of its input
  int target;   ///< the device that receives
  std::size_t dimension;
  bool from_before;  ///< true: from the neighbour before in this dimension; false: from the one after
};

/// The box of the map that a message holds, with the halos of the dimensions that were exchanged before.
std::vector<Rows> halo_box(const Model& model, const SpatialPartition& partition,
                           const ReceivedHalo& message);

/// What a device has of filters that every position has of its own.
enum class LocalFilters { all, own_positions };

/// The reason why the kernels of this project cannot compute the layers on parts of samples, although they
/// can be forecast. Empty if they can.
std::string layer_kernel_problem(const Model& model, const SpatialPartition& partition, LocalFilters held);

/// The same for the whole network. @param batch  samples of a replica at once
std::string kernel_problem(const Model& model, const SpatialPartition& partition, std::int64_t batch);

}  // namespace stepcast
