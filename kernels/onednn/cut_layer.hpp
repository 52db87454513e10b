#pragma once

#include "kernels/map_view.hpp"
#include "kernels/onednn/layer.hpp"
#include "models/device_part.hpp"

namespace stepcast::onednn {

/// {batch, channels, rows...}
Shape map_dims(std::int64_t batch, std::int64_t channels, const std::vector<Rows>& rows);

/// The same layout for other dimensions. @throws InputError for a layout that maps do not have
Desc like(const Desc& layout, const Shape& dims);

/// @throws InputError for a layout whose blocks are not of channels
MapView view_of(const dnnl::memory& memory, const std::vector<Rows>& rows);

/// A layer whose windows cross the cut. Its own rows and those of neighbours come together in maps of their
/// own, one for each direction; kernels read these, and pad only where the whole map ends.
class CutLayer : public OnednnLayer {
 public:
  CutLayer(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site), cut_(*site.cut) {}

  bool has_halo(Pass pass) const override { return halo(pass).own.data != nullptr; }
  void pack_halo(Pass pass, const std::vector<Rows>& box, float* message) override;
  void unpack_halo(Pass pass, const std::vector<Rows>& box, const float* message) override;
  void prepare_halo(Pass pass) override;

 protected:
  std::vector<Rows> rows(Rows CutRows::*which) const;
  Shape pads_before(Halo CutRows::*which) const;
  Shape pads_after(Halo CutRows::*which) const;

  /// Copies those rows that both memories hold.
  void copy_rows(Steps& steps, const dnnl::memory& from, Rows CutRows::*from_rows, const dnnl::memory& to,
                 Rows CutRows::*to_rows);
  /// Puts what a pass reads together: own rows by a step, those of neighbours by who exchanges halos.
  void gather_input(const dnnl::memory& read);
  void gather_errors(const dnnl::memory& errors);

 private:
  /// Rows that neighbours need, and where theirs go.
  struct HaloMaps {
    MapView own, extended;
  };

  const HaloMaps& halo(Pass pass) const { return pass == Pass::forward ? halo_forward_ : halo_backward_; }

  LayerCut cut_;
  HaloMaps halo_forward_, halo_backward_;
  Steps joins_;  ///< the sum of several readers' error signals
  bool prepared_ = false;
};

}  // namespace stepcast::onednn
