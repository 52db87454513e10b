#include "kernels/onednn/layers/layer.hpp"
#include "kernels/onednn/layers/spatial_layer.hpp"
#include "kernels/onednn/layers/windows.hpp"

namespace stepcast::onednn {
namespace {

/// A convolution of which this device computes some rows of the output and, in the backward pass, some rows
/// of the input's gradient.
class SpatialConvolution final : public ConvolutionLayer<SpatialLayer> {
 public:
  SpatialConvolution(std::shared_ptr<Library> library, const LayerSite& site)
      : ConvolutionLayer(std::move(library), site),
        forward_desc_(convolution(&ShardRows::read, &ShardRows::out, &ShardRows::pad, bias_desc())) {
    make_arrays(forward_desc_);
    read_ = scratch(forward_desc_.src_desc());
    gather_input(read_);
    if (!site.separate_border) {
      compute_forward(forward_, forward_desc_, read_, output_memory());
      return;
    }
    for_each_piece(rows(&ShardRows::out), &ShardRows::inner, [this](bool interior, const auto& box) {
      interior ? add_outputs(forward_, {input().memory(), rows(&ShardRows::in)}, box)
               : add_outputs(forward_border_, {read_, rows(&ShardRows::read)}, box);
    });
  }

 private:
  Shape channels_in(Rows ShardRows::*which) const {
    return map_dims(batch(), layer().input.front(), rows(which));
  }
  Shape channels_out(Rows ShardRows::*which) const { return map_dims(batch(), filters(), rows(which)); }

  dnnl::convolution_forward::primitive_desc convolution(Rows ShardRows::*from, Rows ShardRows::*to,
                                                        Halo ShardRows::*pad, const Desc& bias) const {
    return {{dnnl::prop_kind::forward_training, kDirect, any(channels_in(from)), any(weight_dims()), bias,
             any(channels_out(to)), layer().window.stride, pads_before(pad), pads_after(pad)},
            engine()};
  }

  /// The convolution of a box of outputs, in the layouts of the whole.
  dnnl::convolution_forward::primitive_desc convolution(const WindowBox& box, const Desc& source,
                                                        const Desc& bias) const {
    return {{dnnl::prop_kind::forward_training, kDirect,
             like(source, map_dims(batch(), layer().input.front(), box.read)), forward_desc_.weights_desc(),
             bias, like(output_desc(), map_dims(batch(), filters(), box.outputs)), layer().window.stride,
             box.pad_before, box.pad_after},
            engine()};
  }

  /// Adds the steps that compute a box of outputs from a map that holds the rows that they read.
  void add_outputs(Steps& steps, const MapMemory& source, const std::vector<Rows>& outputs) {
    const WindowBox box = windows_of(outputs, &ShardRows::read);
    const auto desc = convolution(box, forward_desc_.src_desc(), bias_desc());
    const MapMemory read{scratch(desc.src_desc()), box.read}, result{scratch(desc.dst_desc()), outputs};
    copy_rows(steps, source, read);
    compute_forward(steps, desc, read.memory, result.memory);
    copy_rows(steps, result, {output_memory(), rows(&ShardRows::out)});
  }

  void connect() override {
    if (wanted()) site().separate_border ? connect_pieces() : connect_data();
    compute_weight_gradient({{kDirect, any(channels_in(&ShardRows::read)), any(weight_dims()), bias_desc(),
                              any(channels_out(&ShardRows::out)), layer().window.stride,
                              pads_before(&ShardRows::pad), pads_after(&ShardRows::pad)},
                             engine(),
                             forward_desc_},
                            read_);
  }

  /// The gradient of this device's rows of the input, from all outputs that read them.
  void connect_data() {
    const dnnl::convolution_backward_data::primitive_desc desc(
        {kDirect, any(channels_in(&ShardRows::in)), any(weight_dims()),
         any(channels_out(&ShardRows::reading)), layer().window.stride, pads_before(&ShardRows::pad_in),
         pads_after(&ShardRows::pad_in)},
        engine(), convolution(&ShardRows::in, &ShardRows::reading, &ShardRows::pad_in, Desc()));
    const dnnl::memory errors = scratch(desc.diff_dst_desc());
    gather_output_gradient(errors);
    compute_input_gradient(backward_data_, desc, errors, make_input_gradient(desc.diff_src_desc()).memory());
  }

  void connect_pieces() {
    const MapMemory errors{scratch(like(output_desc(), channels_out(&ShardRows::reading))),
                           rows(&ShardRows::reading)};
    const MapMemory own = gather_output_gradient(errors.memory);
    const Desc layout = forward_desc_.src_desc();
    const MapMemory result{make_input_gradient(like(layout, channels_in(&ShardRows::in))).memory(),
                           rows(&ShardRows::in)};
    for_each_piece(rows(&ShardRows::in), &ShardRows::inner_back, [&](bool interior, const auto& box) {
      interior ? add_input_gradients(backward_data_, own, box, result)
               : add_input_gradients(backward_data_border_, errors, box, result);
    });
  }

  /// Adds the steps that compute the gradient of a box of inputs from the gradients of all outputs that read
  /// them. Rows that nothing reads keep their zeros.
  void add_input_gradients(Steps& steps, const MapMemory& errors, const std::vector<Rows>& inputs,
                           const MapMemory& result) {
    const WindowBox box = windows_reading(inputs);
    if (!holds_rows(box.outputs)) return;
    const auto forward = convolution(box, result.memory.get_desc(), Desc());
    const dnnl::convolution_backward_data::primitive_desc desc(
        {kDirect, forward.src_desc(), any(weight_dims()), forward.dst_desc(), layer().window.stride,
         box.pad_before, box.pad_after},
        engine(), forward);
    const MapMemory read{scratch(desc.diff_dst_desc()), box.outputs},
        all{scratch(desc.diff_src_desc()), box.read};
    copy_rows(steps, errors, read);
    compute_input_gradient(steps, desc, read.memory, all.memory);
    copy_rows(steps, all, result, inputs);
  }

  dnnl::convolution_forward::primitive_desc forward_desc_;
  dnnl::memory read_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_spatial_convolution(std::shared_ptr<Library> library,
                                                      const LayerSite& site) {
  return std::make_unique<SpatialConvolution>(std::move(library), site);
}

namespace {

/// A pooling layer whose windows read rows of neighbours. The backward pass computes the gradient of all rows
/// that the windows read and keeps the device's own rows. A mean does so because each window must divide by
/// its full number of elements. A maximum also computes, in the forward pass, the neighbours' windows that
/// read own rows, whose positions of the maximum the backward pass needs.
class SpatialPool final : public SpatialLayer {
 public:
  SpatialPool(std::shared_ptr<Library> library, const LayerSite& site)
      : SpatialLayer(std::move(library), site),
        largest_(layer().kind == LayerKind::max_pool),
        read_(scratch(like(input().desc(), dims(&ShardRows::read)))),
        forward_desc_(pool(read_.get_desc(), any(dims(computed_rows())), all_windows())) {
    const Desc all = forward_desc_.dst_desc();
    make_output(largest_ ? like(all, dims(&ShardRows::out)) : all);
    if (largest_) positions_ = {{forward_desc_.workspace_desc(), engine()}, rows(computed_rows())};
    gather_input(read_);
    site.separate_border ? add_pieces() : add_whole();
  }

 private:
  Shape dims(const std::vector<Rows>& box) const { return map_dims(batch(), layer().input.front(), box); }
  Shape dims(Rows ShardRows::*which) const { return dims(rows(which)); }

  /// Rows of the output that the forward pass computes.
  Rows ShardRows::*computed_rows() const { return largest_ ? &ShardRows::reading : &ShardRows::out; }
  WindowBox all_windows() const { return windows_of(rows(computed_rows()), &ShardRows::read); }
  MapMemory own_output() const { return {output_memory(), rows(&ShardRows::out)}; }

  dnnl::algorithm algorithm() const {
    return largest_ ? dnnl::algorithm::pooling_max : dnnl::algorithm::pooling_avg_exclude_padding;
  }

  dnnl::pooling_forward::primitive_desc pool(const Desc& from, const Desc& to, const WindowBox& box) const {
    const Window& w = layer().window;
    return {{dnnl::prop_kind::forward_training, algorithm(), from, to, w.stride, w.kernel, box.pad_before,
             box.pad_after},
            engine()};
  }
  dnnl::pooling_forward::primitive_desc pool(const WindowBox& box) const {
    return pool(like(read_.get_desc(), dims(box.read)), like(forward_desc_.dst_desc(), dims(box.outputs)),
                box);
  }

  void add_whole() {
    const dnnl::memory result = largest_ ? scratch(forward_desc_.dst_desc()) : output_memory();
    Arguments arguments{{DNNL_ARG_SRC, read_}, {DNNL_ARG_DST, result}};
    if (largest_) arguments[DNNL_ARG_WORKSPACE] = positions_.memory;
    call(forward_, dnnl::pooling_forward(forward_desc_), arguments);
    if (largest_) copy_rows(forward_, {result, rows(computed_rows())}, own_output());
  }

  void add_pieces() {
    for_each_piece(rows(computed_rows()), &ShardRows::inner, [this](bool interior, const auto& box) {
      interior ? add_outputs(forward_, {input().memory(), rows(&ShardRows::in)}, box)
               : add_outputs(forward_border_, {read_, rows(&ShardRows::read)}, box);
    });
  }

  /// Adds the steps that compute a box of outputs from a map that holds the rows that they read.
  void add_outputs(Steps& steps, const MapMemory& source, const std::vector<Rows>& outputs) {
    const WindowBox box = windows_of(outputs, &ShardRows::read);
    const auto desc = pool(box);
    const MapMemory read{scratch(desc.src_desc()), box.read}, result{scratch(desc.dst_desc()), outputs};
    copy_rows(steps, source, read);
    Arguments arguments{{DNNL_ARG_SRC, read.memory}, {DNNL_ARG_DST, result.memory}};
    const MapMemory positions{largest_ ? dnnl::memory(desc.workspace_desc(), engine()) : dnnl::memory(),
                              outputs};
    if (largest_) arguments[DNNL_ARG_WORKSPACE] = positions.memory;
    call(steps, dnnl::pooling_forward(desc), arguments);
    copy_rows(steps, result, own_output());
    if (largest_) copy_rows(steps, positions, positions_);
  }

  void connect() override {
    if (!wanted()) return;
    const MapMemory errors{scratch(like(output_desc(), dims(&ShardRows::reading))),
                           rows(&ShardRows::reading)};
    const MapMemory own = gather_output_gradient(errors.memory);
    const MapMemory result{make_input_gradient(input().desc()).memory(), rows(&ShardRows::in)};
    if (!site().separate_border)
      return add_input_gradients(backward_data_, errors, windows_of(errors.rows, &ShardRows::read_back),
                                 {result, result.rows});
    for_each_piece(result.rows, &ShardRows::inner_back, [&](bool interior, const auto& box) {
      interior ? add_input_gradients(backward_data_, own, windows_reading(box), {result, box})
               : add_input_gradients(backward_data_border_, errors, windows_reading(box), {result, box});
    });
  }

  struct Target {
    MapMemory map;
    std::vector<Rows> box;  ///< rows of the map that are written
  };

  /// Adds the steps that compute the gradient of a box of inputs from the gradients of these outputs.
  void add_input_gradients(Steps& steps, const MapMemory& errors, const WindowBox& windows,
                           const Target& target) {
    if (!holds_rows(windows.outputs)) return;
    const auto forward = pool(windows);
    const dnnl::pooling_backward::primitive_desc desc(
        {algorithm(), forward.src_desc(), forward.dst_desc(), layer().window.stride, layer().window.kernel,
         windows.pad_before, windows.pad_after},
        engine(), forward);
    const MapMemory all{scratch(desc.diff_src_desc()), windows.read};
    Arguments arguments{{DNNL_ARG_DIFF_DST, part(steps, errors, windows.outputs, desc.diff_dst_desc())},
                        {DNNL_ARG_DIFF_SRC, all.memory}};
    if (largest_)
      arguments[DNNL_ARG_WORKSPACE] = part(steps, positions_, windows.outputs, forward.workspace_desc());
    call(steps, dnnl::pooling_backward(desc), arguments);
    copy_rows(steps, all, target.map, target.box);
  }

  /// The rows of a box of a map: the map itself if it has no others, else a copy.
  dnnl::memory part(Steps& steps, const MapMemory& map, const std::vector<Rows>& box, const Desc& desc) {
    if (map.memory.get_desc() == desc) return map.memory;
    const MapMemory own{dnnl::memory(desc, engine()), box};
    copy_rows(steps, map, own);
    return own.memory;
  }

  bool largest_;
  dnnl::memory read_;
  dnnl::pooling_forward::primitive_desc forward_desc_;
  MapMemory positions_;  ///< of the maxima, for the backward pass
};

}  // namespace

std::unique_ptr<LayerKernel> make_spatial_pool(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<SpatialPool>(std::move(library), site);
}

}  // namespace stepcast::onednn
