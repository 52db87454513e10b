#include "kernels/onednn/cut_layer.hpp"
#include "kernels/onednn/kinds.hpp"

namespace stepcast::onednn {
namespace {

constexpr auto kMean = dnnl::algorithm::pooling_avg_exclude_padding;

/// An average pool whose windows cross the cut. Backward, the error signal of all rows that its windows read
/// is worked out, so that each window divides by its true number of elements, and its own rows are kept.
class CutPool final : public CutLayer {
 public:
  CutPool(std::shared_ptr<Library> library, const LayerSite& site)
      : CutLayer(std::move(library), site),
        read_(scratch(like(input().desc(), dims(&CutRows::read)))),
        forward_desc_(pool(read_.get_desc(), any(dims(&CutRows::out)), &CutRows::pad)) {
    const OnednnTensor& output = make_output(forward_desc_.dst_desc());
    gather_input(read_);
    call(forward_, dnnl::pooling_forward(forward_desc_),
         {{DNNL_ARG_SRC, read_}, {DNNL_ARG_DST, output.memory()}});
  }

 private:
  Shape dims(Rows CutRows::*which) const { return map_dims(batch(), layer().input.front(), rows(which)); }

  dnnl::pooling_forward::primitive_desc pool(const Desc& from, const Desc& to, Halo CutRows::*pad) const {
    const Window& w = layer().window;
    return {{dnnl::prop_kind::forward_training, kMean, from, to, w.stride, w.kernel, pads_before(pad),
             pads_after(pad)},
            engine()};
  }

  void connect() override {
    if (!wanted()) return;
    const Window& w = layer().window;
    const Desc from = like(input().desc(), dims(&CutRows::read_back));
    const Desc to = like(output_desc(), dims(&CutRows::reading));
    const dnnl::pooling_backward::primitive_desc desc(
        {kMean, from, to, w.stride, w.kernel, pads_before(&CutRows::pad_back),
         pads_after(&CutRows::pad_back)},
        engine(), pool(from, to, &CutRows::pad_back));
    const dnnl::memory errors = scratch(to), all = scratch(from);
    gather_errors(errors);
    call(backward_data_, dnnl::pooling_backward(desc),
         {{DNNL_ARG_DIFF_DST, errors}, {DNNL_ARG_DIFF_SRC, all}});
    const OnednnTensor& result = make_input_gradient(input().desc());
    copy_rows(backward_data_, all, &CutRows::read_back, result.memory(), &CutRows::in);
  }

  dnnl::memory read_;
  dnnl::pooling_forward::primitive_desc forward_desc_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_cut_pool(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<CutPool>(std::move(library), site);
}

}  // namespace stepcast::onednn
