#include "kernels/onednn/cut_layer.hpp"
#include "kernels/onednn/kinds.hpp"

namespace stepcast::onednn {
namespace {

/// A pool whose windows cross the cut. Backward, the error signal of all rows that its windows read is worked
/// out, and its own rows are kept: of a mean so that each window divides by its true number of elements, of a
/// maximum with windows that forward were worked out beyond its own outputs, where they read its own rows.
class CutPool final : public CutLayer {
 public:
  CutPool(std::shared_ptr<Library> library, const LayerSite& site)
      : CutLayer(std::move(library), site),
        largest_(layer().kind == LayerKind::max_pool),
        read_(scratch(like(input().desc(), dims(&CutRows::read)))),
        forward_desc_(pool(read_.get_desc(), any(dims(worked_out())), &CutRows::pad)) {
    const Desc all = forward_desc_.dst_desc();
    const OnednnTensor& output = make_output(largest_ ? like(all, dims(&CutRows::out)) : all);
    const dnnl::memory result = largest_ ? scratch(all) : output.memory();
    gather_input(read_);
    Arguments arguments{{DNNL_ARG_SRC, read_}, {DNNL_ARG_DST, result}};
    if (largest_) arguments[DNNL_ARG_WORKSPACE] = workspace_ = {forward_desc_.workspace_desc(), engine()};
    call(forward_, dnnl::pooling_forward(forward_desc_), arguments);
    if (largest_) copy_rows(forward_, result, worked_out(), output.memory(), &CutRows::out);
  }

 private:
  Shape dims(Rows CutRows::*which) const { return map_dims(batch(), layer().input.front(), rows(which)); }

  /// Rows of the output in the forward pass.
  Rows CutRows::*worked_out() const { return largest_ ? &CutRows::reading : &CutRows::out; }

  dnnl::algorithm algorithm() const {
    return largest_ ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
  }

  dnnl::pooling_forward::primitive_desc pool(const Desc& from, const Desc& to, Halo CutRows::*pad) const {
    const Window& w = layer().window;
    return {{dnnl::prop_kind::forward_training, algorithm(), from, to, w.stride, w.kernel, pads_before(pad),
             pads_after(pad)},
            engine()};
  }

  void connect() override {
    if (!wanted()) return;
    const Window& w = layer().window;
    const Desc from = like(input().desc(), dims(&CutRows::read_back));
    const Desc to = like(output_desc(), dims(&CutRows::reading));
    const dnnl::pooling_backward::primitive_desc desc(
        {algorithm(), from, to, w.stride, w.kernel, pads_before(&CutRows::pad_back),
         pads_after(&CutRows::pad_back)},
        engine(), largest_ ? forward_desc_ : pool(from, to, &CutRows::pad_back));
    const dnnl::memory errors = scratch(to), all = scratch(from);
    gather_errors(errors);
    Arguments arguments{{DNNL_ARG_DIFF_DST, errors}, {DNNL_ARG_DIFF_SRC, all}};
    if (largest_) arguments[DNNL_ARG_WORKSPACE] = workspace_;
    call(backward_data_, dnnl::pooling_backward(desc), arguments);
    const OnednnTensor& result = make_input_gradient(input().desc());
    copy_rows(backward_data_, all, &CutRows::read_back, result.memory(), &CutRows::in);
  }

  bool largest_;
  dnnl::memory read_;
  dnnl::pooling_forward::primitive_desc forward_desc_;
  dnnl::memory workspace_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_cut_pool(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<CutPool>(std::move(library), site);
}

}  // namespace stepcast::onednn
