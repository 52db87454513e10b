#include "kernels/cudnn/cut_layer.hpp"
#include "kernels/cudnn/kinds.hpp"
#include "kernels/cudnn/pool_shape.hpp"

namespace stepcast::cudnn {
namespace {

/// A pool whose windows cross the cut. Backward, the error signal of all rows that its windows read is worked
/// out, and its own rows are kept: of a mean so that each window divides by its true number of elements, of a
/// maximum with windows that forward were worked out beyond its own outputs, where they read its own rows.
class CutPool final : public CutLayer {
 public:
  CutPool(std::shared_ptr<Device> device, const LayerSite& site)
      : CutLayer(std::move(device), site),
        largest_(layer().kind == LayerKind::max_pool),
        order_(image_order(batched(layer().output))),
        read_{scratch(map(&CutRows::read), order_), rows(&CutRows::read)} {
    const RowsMap own{make_output(batched(layer().output), order_), rows(&CutRows::out)};
    // Rows of the output in the forward pass.
    const RowsMap result =
        largest_ ? RowsMap{scratch(map(&CutRows::reading), order_), rows(&CutRows::reading)} : own;
    // 16 bits a tap: two taps a float.
    if (largest_) taps_ = float_scratch({(static_cast<std::int64_t>(result.tensor.elements()) + 1) / 2});
    gather_input(read_);
    forward_.emplace_back([this, y = result.tensor, shape = shape_of(read_, result, &CutRows::pad)] {
      pool_forward(shape, read_.tensor.data(), y.data(), taps(), element(), stream());
    });
    if (largest_) copy_rows(forward_, result, own);
  }

 private:
  Shape map(stepcast::Rows CutRows::*which) const { return map_shape(layer().input.front(), which); }
  std::uint16_t* taps() const { return static_cast<std::uint16_t*>(taps_.data()); }

  PoolShape shape_of(const RowsMap& from, const RowsMap& to, Halo CutRows::*pad) const {
    return pool_shape(layer(), pads_before(pad), from.tensor, to.tensor);
  }

  void connect() override {
    if (!wanted()) return;
    const RowsMap errors{scratch(map(&CutRows::reading), order_), rows(&CutRows::reading)};
    const RowsMap all{scratch(map(&CutRows::read_back), order_), rows(&CutRows::read_back)};
    gather_errors(errors);
    backward_data_.emplace_back([this, errors, all, shape = shape_of(all, errors, &CutRows::pad_back)] {
      pool_backward(shape, errors.tensor.data(), all.tensor.data(), taps(), element(), stream());
    });
    copy_rows(backward_data_, all, {make_input_gradient(input().shape(), order_), rows(&CutRows::in)});
  }

  bool largest_;
  Order order_;
  RowsMap read_;
  CudnnTensor taps_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_cut_pool(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<CutPool>(std::move(device), site);
}

}  // namespace stepcast::cudnn
