#include <algorithm>

#include "kernels/onednn/layers/layer.hpp"

namespace stepcast::onednn {
namespace {

const float* floats_of(const dnnl::memory& memory) {
  return static_cast<const float*>(memory.get_data_handle());
}

/// A convolution whose filters are not shared between positions. At each position, the windows of all samples
/// are a matrix {samples, window}, and the outputs are its product with the position's filters {filters,
/// window}.
class LocallyConnected final : public OnednnLayer {
 public:
  LocallyConnected(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        filters_(layer().output.front()),
        positions_(elements(layer().output) / filters_),
        window_(elements(layer().parameters.at(0).shape) / elements(layer().output)),
        sample_(elements(layer().input)),
        inputs_of_window_(window_),
        windows_(batch() * window_),
        outputs_(batch() * filters_),
        source_(floats_of(reordered(forward_, input().memory(), plain(input().shape())))) {
    for (const ParameterTensor& one : layer().parameters) {
      const Desc row_major = plain({one.elements()});  // as the loops read them
      add_parameter(row_major, row_major);
    }
    forward_.emplace_back([this, to = make_output(plain(batched(layer().output))).data()] {
      for (std::int64_t position = 0; position < positions_; ++position) compute_outputs(position, to);
    });
  }

 private:
  void connect() override {
    if (wanted()) {
      const float* from = floats_of(output_gradient(backward_data_, output_desc()));
      float* to = make_input_gradient(plain(input().shape())).data();
      backward_data_.emplace_back([this, from, to] {
        std::fill_n(to, batch() * sample_, 0.f);
        for (std::int64_t position = 0; position < positions_; ++position)
          add_input_gradient(position, from, to);
      });
    }
    const float* from = floats_of(output_gradient(backward_weights_, output_desc()));
    backward_weights_.emplace_back([this, from] {
      for (std::int64_t position = 0; position < positions_; ++position)
        compute_weight_gradient(position, from);
    });
  }

  void compute_outputs(std::int64_t position, float* to) {
    find_window(position);
    gather_windows();
    dnnl::sgemm('N', 'T', batch(), filters_, window_, 1, windows_.data(), window_,
                parameter(0).data() + position * filters_ * window_, window_, 0, outputs_.data(), filters_);
    const float* bias = has_bias() ? parameter(1).data() + position * filters_ : nullptr;
    for (std::int64_t i = 0; i < batch() * filters_; ++i)
      to[i * positions_ + position] = output_at(i) + (bias == nullptr ? 0 : bias[i % filters_]);
  }

  void add_input_gradient(std::int64_t position, const float* from, float* to) {
    find_window(position);
    gather_outputs(position, from);
    dnnl::sgemm('N', 'N', batch(), window_, filters_, 1, outputs_.data(), filters_,
                parameter(0).data() + position * filters_ * window_, window_, 0, windows_.data(), window_);
    const float* value = windows_.data();
    for (std::int64_t b = 0; b < batch(); ++b) {
      for (const std::int64_t index : inputs_of_window_) {
        if (index >= 0) to[b * sample_ + index] += *value;
        ++value;
      }
    }
  }

  void compute_weight_gradient(std::int64_t position, const float* from) {
    find_window(position);
    gather_windows();
    gather_outputs(position, from);
    dnnl::sgemm('T', 'N', filters_, window_, batch(), 1, outputs_.data(), filters_, windows_.data(), window_,
                0, parameter(0).gradient_data() + position * filters_ * window_, window_);
    if (!has_bias()) return;
    float* bias = parameter(1).gradient_data() + position * filters_;
    std::fill_n(bias, filters_, 0.f);
    for (std::int64_t i = 0; i < batch() * filters_; ++i) bias[i % filters_] += output_at(i);
  }

  /// Sets the index in a sample of each element of a position's window; -1 for padding.
  void find_window(std::int64_t position) {
    const Window& w = layer().window;
    const Shape &in = layer().input, &out = layer().output;
    std::vector<std::int64_t> first(w.kernel.size());
    for (std::size_t i = first.size(); i-- > 0;) {
      first[i] = position % out[i + 1] * w.stride[i] - w.pad_before[i];
      position /= out[i + 1];
    }
    for (std::int64_t element = 0; element < window_; ++element) {
      std::int64_t rest = element, index = 0, stride = 1;
      bool inside = true;
      for (std::size_t i = first.size(); i-- > 0;) {
        const std::int64_t at = first[i] + rest % w.kernel[i];
        rest /= w.kernel[i];
        inside = inside && at >= 0 && at < in[i + 1];
        index += at * stride;
        stride *= in[i + 1];
      }
      index += rest * stride;  // what is left of the element's number is its channel
      inputs_of_window_[element] = inside ? index : -1;
    }
  }

  void gather_windows() {
    float* to = windows_.data();
    for (std::int64_t b = 0; b < batch(); ++b) {
      for (const std::int64_t index : inputs_of_window_) *to++ = index < 0 ? 0 : source_[b * sample_ + index];
    }
  }

  /// Collects the outputs' gradients of a position.
  void gather_outputs(std::int64_t position, const float* from) {
    for (std::size_t i = 0; i < outputs_.size(); ++i) outputs_[i] = from[i * positions_ + position];
  }

  float output_at(std::int64_t i) const { return outputs_[i]; }
  bool has_bias() const { return layer().parameters.size() > 1; }

  std::int64_t filters_, positions_;
  std::int64_t window_, sample_;                ///< elements of a window and of a sample, of all channels
  std::vector<std::int64_t> inputs_of_window_;  ///< from find_window
  std::vector<float> windows_, outputs_;        ///< of a position: {samples, window}, {samples, filters}
  const float* source_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_locally_connected(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<LocallyConnected>(std::move(library), site);
}

}  // namespace stepcast::onednn
