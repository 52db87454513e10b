#pragma once

#include "kernels/cudnn/layer.hpp"
#include "models/device_part.hpp"

namespace stepcast::cudnn {

/// A map in memory and the rows of the whole map that it holds along each dimension, with `before` more of
/// zeros in front, which the whole map does not have.
struct RowsMap {
  CudnnTensor tensor;
  std::vector<stepcast::Rows> rows;
  std::vector<std::int64_t> before = {};  ///< empty: none
};

/// Between rows that both maps hold; a box of no elements where there are none.
Move move_rows(const RowsMap& from, const RowsMap& to);
/// Between those of a box of rows that the map holds and a message, [sample][position][channel] in fp32.
Move rows_to_message(const RowsMap& from, const std::vector<stepcast::Rows>& box);
Move message_to_rows(const std::vector<stepcast::Rows>& box, const RowsMap& to);

/// A layer whose windows cross the cut. Its own rows and those of neighbours come together in maps of their
/// own, one for each direction; what the whole map does not have are zeros in them, so that kernels pad
/// nothing.
class CutLayer : public CudnnLayer {
 public:
  CutLayer(std::shared_ptr<Device> device, const LayerSite& site);

  bool has_halo(Pass pass) const override { return !halo(pass).own.rows.empty(); }
  void pack_halo(Pass pass, const std::vector<stepcast::Rows>& box, float* message) override;
  void unpack_halo(Pass pass, const std::vector<stepcast::Rows>& box, const float* message) override;
  void prepare_halo(Pass pass) override;

 protected:
  std::vector<stepcast::Rows> rows(stepcast::Rows CutRows::*which) const;
  std::vector<std::int64_t> pads_before(Halo CutRows::*which) const;
  /// {batch, channels, rows...}, each dimension larger by both pads where they are given.
  Shape map_shape(std::int64_t channels, stepcast::Rows CutRows::*which, Halo CutRows::*pad = nullptr) const;

  void copy_rows(Steps& steps, const RowsMap& from, const RowsMap& to);
  /// Puts what a pass reads together: own rows by a step, those of neighbours by who exchanges halos.
  void gather_input(const RowsMap& read);
  void gather_errors(const RowsMap& errors);

 private:
  /// Rows that neighbours need, and where theirs go.
  struct HaloMaps {
    RowsMap own, extended;
  };

  const HaloMaps& halo(Pass pass) const { return pass == Pass::forward ? halo_forward_ : halo_backward_; }

  LayerCut cut_;
  HaloMaps halo_forward_, halo_backward_;
  Steps joins_;  ///< the sum of several readers' error signals
  bool prepared_ = false;
};

}  // namespace stepcast::cudnn
