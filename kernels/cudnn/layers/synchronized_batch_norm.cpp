#include "kernels/cudnn/cuda/sums.hpp"
#include "kernels/cudnn/layers/layer.hpp"

namespace stepcast::cudnn {
namespace {

/// Batch norm with statistics over several devices: each device sums over its own part, an all-reduce adds up
/// the sums, and then the pass goes on (sums.hpp). Uses kernels of this project, because cuDNN's calls cannot
/// stop for the all-reduce.
class SynchronizedBatchNorm final : public CudnnLayer {
 public:
  SynchronizedBatchNorm(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site),
        source_(reordered(forward_, input(), input_order())),
        mean_(float_scratch({channel_count()})),
        inverse_(float_scratch({channel_count()})),
        ones_(float_scratch({channel_count()})),
        zeros_(float_scratch({channel_count()})),
        sums_(float_scratch({2 * channel_count()})) {
    for (std::size_t i = 0; i < layer().parameters.size(); ++i) add_parameter();
    ones_.write(std::vector<float>(ones_.elements(), 1));
    make_output(source_.shape(), source_.order());
    forward_.emplace_back([this] {
      group_norm_sums(channels(), source_.data(), number(sums_), partial(), stream());
      if (!sums_deferred_) finish(Pass::forward, own_count());
    });
  }

  std::span<float> partial_sums(Pass) override { return {number(sums_), sums_.elements()}; }
  void defer_sums() override { sums_deferred_ = true; }
  void finish(Pass pass) override { finish(pass, static_cast<double>(site().statistics_count)); }

 private:
  std::int64_t channel_count() const { return layer().input.front(); }
  static float* number(const CudnnTensor& tensor) { return static_cast<float*>(tensor.data()); }
  Scratch partial() const { return {device()->workspace.data(), device()->workspace.bytes}; }

  Channels channels() const {
    const std::int64_t c = channel_count(), all = static_cast<std::int64_t>(source_.elements());
    if (source_.order() == Order::channels_last) return {all / c, c, 1, element()};
    return {batch(), c, all / (batch() * c), element()};
  }
  double own_count() const { return static_cast<double>(channels().outer * channels().inner); }

  /// The model's array with this name; null if there is none.
  float* value(const char* name) {
    const int found = find_parameter(name);
    return found < 0 ? nullptr : parameter(static_cast<std::size_t>(found)).value;
  }
  BatchNormArrays arrays() {
    const float *scale = value("scale"), *shift = value("shift");
    return {scale == nullptr ? number(ones_) : scale,
            shift == nullptr ? number(zeros_) : shift,
            number(mean_),
            number(inverse_),
            value("running_mean"),
            value("running_variance")};
  }

  void finish(Pass pass, double count) {
    if (pass == Pass::forward)
      return group_norm_forward(channels(), arrays(), number(sums_), count, source_.data(), result().data(),
                                stream());
    group_norm_backward(channels(), arrays(), number(sums_), count, source_.data(), errors_.data(),
                        result_.data(), stream());
  }

  void connect() override {
    Steps& steps = wanted() ? backward_data_ : backward_weights_;
    errors_ = output_gradient(steps, source_.order());
    result_ = make_input_gradient(source_.shape(), source_.order());
    const auto pass = wanted() ? Pass::backward_data : Pass::backward_weights;
    steps.emplace_back([this, pass] {
      group_norm_sums_back(channels(), arrays(), source_.data(), errors_.data(), number(sums_), partial(),
                           stream());
      keep_gradient("shift", number(sums_));
      keep_gradient("scale", number(sums_) + channel_count());
      if (!sums_deferred_) finish(pass, own_count());
    });
  }

  /// Copies a gradient of the own part; training all-reduces it later.
  void keep_gradient(const char* name, const float* from) {
    const int found = find_parameter(name);
    if (found < 0) return;
    check(cudaMemcpyAsync(parameter(static_cast<std::size_t>(found)).gradient, from,
                          static_cast<std::size_t>(channel_count()) * sizeof(float), cudaMemcpyDeviceToDevice,
                          stream()),
          "cudaMemcpyAsync");
  }

  CudnnTensor source_, mean_, inverse_, ones_, zeros_, sums_, errors_, result_;
  bool sums_deferred_ = false;
};

}  // namespace

std::unique_ptr<LayerKernel> make_synchronized_batch_norm(std::shared_ptr<Device> device,
                                                          const LayerSite& site) {
  return std::make_unique<SynchronizedBatchNorm>(std::move(device), site);
}

}  // namespace stepcast::cudnn
