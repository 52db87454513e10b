#include <algorithm>

#include "kernels/onednn/layers/layer.hpp"
#include "kernels/onednn/layers/spatial_layer.hpp"

namespace stepcast::onednn {
namespace {

const float* floats_of(const dnnl::memory& memory) {
  return static_cast<const float*>(memory.get_data_handle());
}

/// Products of a convolution whose filters are not shared between positions. At each position, the windows of
/// all samples are a matrix {samples, window}, and the outputs are its product with the position's filters
/// {filters, window}. Maps and parameters are row-major.
class PositionProducts {
 public:
  /// @param input  the map that windows read; @param pad_before  padding before it along each dimension
  PositionProducts(const Layer& layer, std::int64_t batch, Shape input, Shape pad_before)
      : input_(std::move(input)),
        output_(layer.output),
        kernel_(layer.window.kernel),
        stride_(layer.window.stride),
        pad_before_(std::move(pad_before)),
        batch_(batch),
        filters_(output_.front()),
        positions_(elements(output_) / filters_),
        window_(elements(layer.parameters.at(0).shape) / elements(output_)),
        sample_(elements(input_)),
        inputs_of_window_(window_),
        windows_(batch * window_),
        outputs_(batch * filters_) {}

  std::int64_t positions() const { return positions_; }
  std::int64_t input_elements() const { return batch_ * sample_; }

  /// @param bias  of all positions; null: none
  void compute_outputs(std::int64_t position, const float* from, const float* weights, const float* bias,
                       float* to) {
    find_window(position);
    gather_windows(from);
    dnnl::sgemm('N', 'T', batch_, filters_, window_, 1, windows_.data(), window_,
                weights + position * filters_ * window_, window_, 0, outputs_.data(), filters_);
    if (bias != nullptr) bias += position * filters_;
    for (std::int64_t i = 0; i < batch_ * filters_; ++i)
      to[i * positions_ + position] = output_at(i) + (bias == nullptr ? 0 : bias[i % filters_]);
  }

  void add_input_gradient(std::int64_t position, const float* errors, const float* weights, float* to) {
    find_window(position);
    gather_outputs(position, errors);
    dnnl::sgemm('N', 'N', batch_, window_, filters_, 1, outputs_.data(), filters_,
                weights + position * filters_ * window_, window_, 0, windows_.data(), window_);
    const float* value = windows_.data();
    for (std::int64_t b = 0; b < batch_; ++b) {
      for (const std::int64_t index : inputs_of_window_) {
        if (index >= 0) to[b * sample_ + index] += *value;
        ++value;
      }
    }
  }

  /// @param bias  null: none
  void compute_weight_gradient(std::int64_t position, const float* from, const float* errors, float* weights,
                               float* bias) {
    find_window(position);
    gather_windows(from);
    gather_outputs(position, errors);
    dnnl::sgemm('T', 'N', filters_, window_, batch_, 1, outputs_.data(), filters_, windows_.data(), window_,
                0, weights + position * filters_ * window_, window_);
    if (bias == nullptr) return;
    bias += position * filters_;
    std::fill_n(bias, filters_, 0.f);
    for (std::int64_t i = 0; i < batch_ * filters_; ++i) bias[i % filters_] += output_at(i);
  }

 private:
  /// Sets the index in a sample of each element of a position's window; -1 for padding.
  void find_window(std::int64_t position) {
    std::vector<std::int64_t> first(kernel_.size());
    for (std::size_t i = first.size(); i-- > 0;) {
      first[i] = position % output_[i + 1] * stride_[i] - pad_before_[i];
      position /= output_[i + 1];
    }
    for (std::int64_t element = 0; element < window_; ++element) {
      std::int64_t rest = element, index = 0, stride = 1;
      bool inside = true;
      for (std::size_t i = first.size(); i-- > 0;) {
        const std::int64_t at = first[i] + rest % kernel_[i];
        rest /= kernel_[i];
        inside = inside && at >= 0 && at < input_[i + 1];
        index += at * stride;
        stride *= input_[i + 1];
      }
      index += rest * stride;  // what is left of the element's number is its channel
      inputs_of_window_[element] = inside ? index : -1;
    }
  }

  void gather_windows(const float* from) {
    float* to = windows_.data();
    for (std::int64_t b = 0; b < batch_; ++b) {
      for (const std::int64_t index : inputs_of_window_) *to++ = index < 0 ? 0 : from[b * sample_ + index];
    }
  }

  /// Collects the outputs' gradients of a position.
  void gather_outputs(std::int64_t position, const float* errors) {
    for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i] = errors[i * positions_ + position];
  }

  float output_at(std::int64_t i) const { return outputs_[i]; }

  Shape input_, output_, kernel_, stride_, pad_before_;
  std::int64_t batch_, filters_, positions_;
  std::int64_t window_, sample_;                ///< elements of a window and of a sample, of all channels
  std::vector<std::int64_t> inputs_of_window_;  ///< from find_window
  std::vector<float> windows_, outputs_;        ///< of a position: {samples, window}, {samples, filters}
};

/// What both kernels of this file have in common.
template <class Base>
class LocalLayer : public Base {
 public:
  LocalLayer(std::shared_ptr<Library> library, const LayerSite& site, Shape input, Shape pad_before)
      : Base(std::move(library), site),
        products_(this->layer(), this->batch(), std::move(input), std::move(pad_before)) {
    for (const ParameterTensor& one : this->layer().parameters) {
      const Desc row_major = plain({one.elements()});  // as the loops read them
      this->add_parameter(row_major, row_major);
    }
    output_ = this->make_output(plain(this->batched(this->layer().output))).data();
  }

 protected:
  const float* bias() const { return has_bias() ? this->parameter(1).data() : nullptr; }
  void compute_output(std::int64_t position, const float* from) {
    products_.compute_outputs(position, from, this->parameter(0).data(), bias(), output_);
  }
  void add_input_gradients(const float* errors, float* to) {
    std::fill_n(to, products_.input_elements(), 0.f);
    for (std::int64_t position = 0; position < products_.positions(); ++position)
      products_.add_input_gradient(position, errors, this->parameter(0).data(), to);
  }
  /// Adds the backward-weights pass. @param from  what windows read
  void connect_weights(const float* from) {
    const float* errors = floats_of(this->output_gradient(this->backward_weights_, this->output_desc()));
    this->backward_weights_.emplace_back([this, from, errors] {
      float* bias = has_bias() ? this->parameter(1).gradient_data() : nullptr;
      for (std::int64_t position = 0; position < products_.positions(); ++position)
        products_.compute_weight_gradient(position, from, errors, this->parameter(0).gradient_data(), bias);
    });
  }

  bool has_bias() const { return this->layer().parameters.size() > 1; }

  PositionProducts products_;
  float* output_ = nullptr;
};

class LocallyConnected final : public LocalLayer<OnednnLayer> {
 public:
  LocallyConnected(std::shared_ptr<Library> library, const LayerSite& site)
      : LocalLayer(std::move(library), site, site.layer->input, site.layer->window.pad_before),
        source_(floats_of(reordered(forward_, input().memory(), plain(input().shape())))) {
    forward_.emplace_back([this] {
      for (std::int64_t position = 0; position < products_.positions(); ++position)
        compute_output(position, source_);
    });
  }

 private:
  void connect() override {
    if (wanted()) {
      const float* errors = floats_of(output_gradient(backward_data_, output_desc()));
      float* to = make_input_gradient(plain(input().shape())).data();
      backward_data_.emplace_back([this, errors, to] { add_input_gradients(errors, to); });
    }
    connect_weights(source_);
  }

  const float* source_;
};

Shape read_shape(const LayerSite& site) {
  Shape shape{site.layer->input.front()};
  for (const ShardRows& rows : *site.rows) shape.push_back(rows.read.size());
  return shape;
}

Shape read_padding(const LayerSite& site) {
  Shape padding;
  for (const ShardRows& rows : *site.rows) padding.push_back(rows.pad.before);
  return padding;
}

/// A layer of which this device has some positions and their filters. It reads rows of neighbours, and
/// returns what its outputs contribute to the gradients of these rows.
class SpatialLocallyConnected final : public LocalLayer<SpatialLayer> {
 public:
  SpatialLocallyConnected(std::shared_ptr<Library> library, const LayerSite& site)
      : LocalLayer(std::move(library), site, read_shape(site), read_padding(site)),
        read_(scratch(plain(map_dims(batch(), site.layer->input.front(), rows(&ShardRows::read))))) {
    gather_input(read_);
    if (!site.separate_border) {
      add_outputs(forward_, rows(&ShardRows::out));
      return;
    }
    for_each_piece(rows(&ShardRows::out), &ShardRows::inner, [this](bool interior, const auto& box) {
      add_outputs(interior ? forward_ : forward_border_, box);
    });
  }

  bool returns_halo() const override { return own_gradient_.data != nullptr; }
  void pack_halo(Pass pass, const std::vector<Rows>& box, float* message) override {
    if (pass == Pass::forward) return SpatialLayer::pack_halo(pass, box, message);
    pack(box, read_gradient_, read_gradient_, message);
  }
  void unpack_halo(Pass pass, const std::vector<Rows>& box, const float* message) override {
    if (pass == Pass::forward) return SpatialLayer::unpack_halo(pass, box, message);
    add(box, own_gradient_, read_gradient_, message);
  }

 private:
  /// Adds the step that computes a box of outputs from the gathered map. The interior reads only the device's
  /// own rows of it.
  void add_outputs(Steps& steps, const std::vector<Rows>& box) {
    std::vector<std::int64_t> positions{0};
    const std::vector<Rows> own = rows(&ShardRows::out);
    for (std::size_t i = 0; i < box.size(); ++i) {
      std::vector<std::int64_t> finer;
      for (const std::int64_t position : positions) {
        for (std::int64_t row = box[i].first; row < box[i].last; ++row)
          finer.push_back(position * own[i].size() + row - own[i].first);
      }
      positions = std::move(finer);
    }
    steps.emplace_back([this, positions = std::move(positions)] {
      for (const std::int64_t position : positions) compute_output(position, floats_of(read_));
    });
  }

  void connect() override {
    if (wanted()) {
      const float* errors = floats_of(output_gradient(backward_data_, output_desc()));
      const dnnl::memory all = scratch(read_.get_desc());
      const MapMemory own{make_input_gradient(plain(input().shape())).memory(), rows(&ShardRows::in)};
      backward_data_.emplace_back([this, errors, to = static_cast<float*>(all.get_data_handle())] {
        add_input_gradients(errors, to);
      });
      copy_rows(backward_data_, {all, rows(&ShardRows::read)}, own);
      own_gradient_ = view_of(own.memory, own.rows);
      read_gradient_ = view_of(all, rows(&ShardRows::read));
    }
    connect_weights(floats_of(read_));
  }

  dnnl::memory read_;
  MapView own_gradient_;   ///< of the device's rows of the input
  MapView read_gradient_;  ///< of all rows that it reads
};

}  // namespace

std::unique_ptr<LayerKernel> make_locally_connected(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<LocallyConnected>(std::move(library), site);
}

std::unique_ptr<LayerKernel> make_spatial_locally_connected(std::shared_ptr<Library> library,
                                                            const LayerSite& site) {
  return std::make_unique<SpatialLocallyConnected>(std::move(library), site);
}

}  // namespace stepcast::onednn
