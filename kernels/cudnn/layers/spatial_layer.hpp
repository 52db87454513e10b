#pragma once

#include "kernels/cudnn/layers/layer.hpp"
#include "models/partition/spatial_shard.hpp"

namespace stepcast::cudnn {

/// A map that holds some rows of the whole map along each dimension, after `before` rows of zeros that the
/// whole map does not have.
struct PartialMap {
  CudnnTensor tensor;
  std::vector<stepcast::Rows> rows;
  std::vector<std::int64_t> before = {};  ///< empty: no rows of zeros
};

/// A copy of the rows that both maps hold; an empty box if there are none.
Move move_rows(const PartialMap& from, const PartialMap& to);
/// A copy of the rows of a box that the map holds to a message: [sample][position][channel] in fp32.
Move rows_to_message(const PartialMap& from, const std::vector<stepcast::Rows>& box);
/// A copy of the rows of a box that the map holds from a message.
Move message_to_rows(const std::vector<stepcast::Rows>& box, const PartialMap& to);

/// A layer of a spatially partitioned sample whose windows read rows of neighbouring devices. Own rows and
/// halos are gathered in separate maps, one for the forward and one for the backward pass. Rows beyond the
/// whole map are zeros in them, so that kernels need no padding.
class SpatialLayer : public CudnnLayer {
 public:
  SpatialLayer(std::shared_ptr<Device> device, const LayerSite& site);

  bool has_halo(Pass pass) const override { return !halo(pass).own.rows.empty(); }
  void pack_halo(Pass pass, const std::vector<stepcast::Rows>& box, float* message) override;
  void unpack_halo(Pass pass, const std::vector<stepcast::Rows>& box, const float* message) override;
  void prepare_halo(Pass pass) override;

 protected:
  std::vector<stepcast::Rows> rows(stepcast::Rows ShardRows::*which) const;
  std::vector<std::int64_t> pads_before(Halo ShardRows::*which) const;
  /// The shape {batch, channels, rows...}, with padding added to each dimension if `pad` is given.
  Shape map_shape(std::int64_t channels, stepcast::Rows ShardRows::*which,
                  Halo ShardRows::*pad = nullptr) const;

  void copy_rows(Steps& steps, const PartialMap& from, const PartialMap& to);
  /// Gathers the input's rows that the forward pass reads: a call copies own rows, the halo exchange adds
  /// those of neighbours.
  void gather_input(const PartialMap& read);
  /// Gathers the rows of the output's gradient that the backward pass reads.
  void gather_output_gradient(const PartialMap& errors);

 private:
  /// The device's own rows, from which halos are packed, and the gathered map, into which halos are unpacked.
  struct HaloMaps {
    PartialMap own, extended;
  };

  const HaloMaps& halo(Pass pass) const { return pass == Pass::forward ? halo_forward_ : halo_backward_; }

  LayerShardRows rows_;
  HaloMaps halo_forward_, halo_backward_;
  Steps gradient_sum_steps_;  ///< calls that sum the gradients of several readers
  bool prepared_ = false;
};

}  // namespace stepcast::cudnn
