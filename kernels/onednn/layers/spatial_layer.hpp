#pragma once

#include <cstdint>
#include <vector>

#include "kernels/onednn/layers/layer.hpp"
#include "models/partition/spatial_partition.hpp"
#include "models/partition/spatial_shard.hpp"

namespace stepcast {

/// A batch of maps in memory with channels in blocks. Element (sample, channel, position) lies at
/// sample x sample_stride + channel / block x block_stride + channel % block + position . strides.
struct MapView {
  float* data = nullptr;
  std::int64_t samples = 0, channels = 0;
  std::int64_t sample_stride = 0, block = 1, block_stride = 0;
  std::vector<std::int64_t> strides;  ///< stride of each spatial dimension
  std::vector<Rows> rows;             ///< rows of the whole map that this memory holds, for each dimension
};

/// Copies a box of rows into a message: [sample][position][channel]. Positions that `own` does not hold are
/// taken from `extended`, which must hold them.
void pack(const std::vector<Rows>& box, const MapView& own, const MapView& extended, float* message);

/// Copies a message into a box of rows; positions that `extended` does not hold are left out.
void unpack(const std::vector<Rows>& box, const MapView& extended, const float* message);

/// Adds a message to a box of rows of `own`; positions that it does not hold are added to `extended`.
void add(const std::vector<Rows>& box, const MapView& own, const MapView& extended, const float* message);

}  // namespace stepcast

namespace stepcast::onednn {

/// A descriptor of the same memory layout for other dimensions. @throws InputError for layouts that are not
/// supported for maps
Desc like(const Desc& layout, const Shape& dims);

/// A view of a map in memory that holds these rows. @throws InputError if the layout has blocks of other
/// dimensions than channels
MapView view_of(const dnnl::memory& memory, const std::vector<Rows>& rows);

/// The shape {batch, channels, rows...}.
Shape map_dims(std::int64_t batch, std::int64_t channels, const std::vector<Rows>& rows);

/// A map in memory and the rows of the whole map that it holds.
struct MapMemory {
  dnnl::memory memory;
  std::vector<Rows> rows;
};

/// A box of outputs, the rows of the input that their windows read, and the padding beyond the map.
struct WindowBox {
  explicit WindowBox(const std::vector<WindowRows>& dimensions);

  std::vector<Rows> outputs, read;
  Shape pad_before, pad_after;
};

bool holds_rows(const std::vector<Rows>& box);

/// A layer of a spatially partitioned sample whose windows read rows of neighbouring devices. Own rows and
/// halos are gathered in separate maps, one for the forward and one for the backward pass; kernels read these
/// and pad only at the borders of the whole map.
class SpatialLayer : public OnednnLayer {
 public:
  SpatialLayer(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site), rows_(*site.rows) {}

  bool has_halo(Pass pass) const override { return halo(pass).own.data != nullptr; }
  void pack_halo(Pass pass, const std::vector<Rows>& box, float* message) override;
  void unpack_halo(Pass pass, const std::vector<Rows>& box, const float* message) override;
  void prepare_halo(Pass pass) override;

 protected:
  std::vector<Rows> rows(Rows ShardRows::*which) const;
  Shape pads_before(Halo ShardRows::*which) const;
  Shape pads_after(Halo ShardRows::*which) const;

  /// The windows of a box of outputs, in a map that holds these rows, and those that read a box of the input.
  WindowBox windows_of(const std::vector<Rows>& outputs, Rows ShardRows::*held) const;
  WindowBox windows_reading(const std::vector<Rows>& inputs) const;

  /// Copies the rows that both memories hold, or those of a box that they hold.
  void copy_rows(Steps& steps, const MapMemory& from, const MapMemory& to) {
    copy_rows(steps, from, to, to.rows);
  }
  void copy_rows(Steps& steps, const MapMemory& from, const MapMemory& to, const std::vector<Rows>& box);
  /// Gathers the input's rows that the forward pass reads: a call copies own rows, the halo exchange adds
  /// those of neighbours.
  void gather_input(const dnnl::memory& read);
  /// Gathers the rows of the output's gradient that the backward pass reads. @returns the device's own rows
  MapMemory gather_output_gradient(const dnnl::memory& errors);

  /// Calls add(is interior, box) for the interior of a box of rows, which is computed from the device's own
  /// rows while halos travel, and for the boxes of its border, which is computed from the gathered map.
  /// @param inner  rows along each dimension that need no halo
  template <class Add>
  void for_each_piece(const std::vector<Rows>& box, Rows ShardRows::*inner, const Add& add) const {
    const stepcast::SeparatedBox pieces = stepcast::separate_border(box, rows(inner));
    if (holds_rows(pieces.interior)) add(true, pieces.interior);
    for (const std::vector<Rows>& one : pieces.border) {
      if (holds_rows(one)) add(false, one);
    }
  }

 private:
  /// The device's own rows, from which halos are packed, and the gathered map, into which halos are unpacked.
  struct HaloMaps {
    MapView own, extended;
  };

  const HaloMaps& halo(Pass pass) const { return pass == Pass::forward ? halo_forward_ : halo_backward_; }

  LayerShardRows rows_;
  HaloMaps halo_forward_, halo_backward_;
  Steps gradient_sum_steps_;  ///< calls that sum the gradients of several readers
  bool prepared_ = false;
};

}  // namespace stepcast::onednn
