#include <algorithm>

#include "kernels/cudnn/cuda/rows.hpp"
#include "kernels/cudnn/cuda/sums.hpp"
#include "kernels/cudnn/layers/layer.hpp"

namespace stepcast::cudnn {
namespace {

constexpr double kEpsilon = 1e-5;
constexpr double kBatchWeight = 0.1;  ///< weight of the batch in each step's update of the running statistics
constexpr float kOne = 1, kZero = 0;
constexpr auto kOps = CUDNN_BATCHNORM_OPS_BN;

/// Batch norm with the statistics of the batch. Running statistics are updated and not used in training.
/// Computed by cuDNN, and by kernels of this project for bf16 and with a ReLU (LayerSite::with_relu).
class BatchNorm final : public CudnnLayer {
 public:
  BatchNorm(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site),
        source_(reordered(forward_, input(), input_order())),
        mean_(float_scratch({channel_count()})),
        inverse_(float_scratch({channel_count()})),
        ones_(float_scratch({channel_count()})),
        unused_(float_scratch({4 * channel_count()})) {
    for (std::size_t i = 0; i < layer().parameters.size(); ++i) add_parameter();
    ones_.write(std::vector<float>(ones_.elements(), 1));
    make_output(source_.shape(), source_.order());
    if (site.with_relu) {
      compute_with_relu();
      return;
    }
    if (own_kernels()) {
      forward_.emplace_back([this] {
        batch_norm_forward(channels(), arrays(), source_.data(), result().data(), partial(), stream());
      });
      return;
    }
    prepare_cudnn();
    forward_.emplace_back([this] { compute(); });
  }

 private:
  /// The persistent mode is meant for innermost channels; in other layouts it costs accuracy.
  cudnnBatchNormMode_t mode() const {
    return source_.order() == Order::channels_last ? CUDNN_BATCHNORM_SPATIAL_PERSISTENT
                                                   : CUDNN_BATCHNORM_SPATIAL;
  }
  bool own_kernels() const { return element() == Element::bf16; }
  std::int64_t channel_count() const { return layer().input.front(); }

  float* value(const char* name, int spare) { return array(name, spare, &Parameter::value); }
  float* gradient(const char* name, int spare) { return array(name, spare, &Parameter::gradient); }
  /// The model's array, or a spare array that is not read if the model has none.
  float* array(const char* name, int spare, float* Parameter::*which) {
    const int i = find_parameter(name);
    if (i >= 0) return parameter(i).*which;
    return float_data(unused_) + spare * channel_count();
  }
  float* scale() { return find_parameter("scale") < 0 ? float_data(ones_) : value("scale", 0); }
  float* running(const char* name) { return find_parameter(name) < 0 ? nullptr : value(name, 0); }

  BatchNormArrays arrays() {
    return {scale(),
            value("shift", 0),
            float_data(mean_),
            float_data(inverse_),
            running("running_mean"),
            running("running_variance")};
  }
  Channels channels() const {
    const std::int64_t c = channel_count(), all = source_.elements();
    if (source_.order() == Order::channels_last) return {all / c, c, 1, element()};
    return {batch(), c, all / (batch() * c), element()};
  }
  Scratch partial() const { return {device()->workspace.data(), device()->workspace.bytes}; }

  /// @param dy, masked, dx  only for the backward pass
  NormReluArrays relu_arrays(void* dy = nullptr, void* masked = nullptr, void* dx = nullptr) const {
    return {source_.data(), added_.data(), result().data(), dy, masked, dx};
  }

  void compute_with_relu() {
    const bool adds = site().inputs.size() > 1;
    if (adds) added_ = reordered(forward_, input(1), source_.order());
    note(adds ? "with the addition and the ReLU after it" : "with the ReLU after it");
    forward_.emplace_back(
        [this] { batch_norm_relu_forward(channels(), arrays(), relu_arrays(), partial(), stream()); });
  }

  void connect_with_relu(Steps& steps, const CudnnTensor& dy, const CudnnTensor& dx) {
    CudnnTensor masked;
    if (added_.data() != nullptr) masked = make_input_gradient(source_.shape(), source_.order(), 1);
    steps.emplace_back([this, dy, masked, dx] {
      batch_norm_relu_backward(channels(), arrays(), relu_arrays(dy.data(), masked.data(), dx.data()),
                               gradient("scale", 1), gradient("shift", 2), partial(), stream());
    });
  }

  void prepare_cudnn() {
    data_ = describe(source_, as_image(source_.shape()));
    statistics_ = make_owned<TensorDesc>(cudnnCreateTensorDescriptor, "cudnnCreateTensorDescriptor");
    check(cudnnDeriveBNTensorDescriptor(statistics_.get(), data_.get(), mode()),
          "cudnnDeriveBNTensorDescriptor");
    std::size_t work = 0, back = 0, reserve = 0;
    check(cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(device()->dnn.get(), mode(), kOps,
                                                                   data_.get(), nullptr, data_.get(),
                                                                   statistics_.get(), nullptr, &work),
          "cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize");
    check(cudnnGetBatchNormalizationBackwardExWorkspaceSize(device()->dnn.get(), mode(), kOps, data_.get(),
                                                            nullptr, data_.get(), nullptr, data_.get(),
                                                            statistics_.get(), nullptr, &back),
          "cudnnGetBatchNormalizationBackwardExWorkspaceSize");
    check(cudnnGetBatchNormalizationTrainingExReserveSpaceSize(device()->dnn.get(), mode(), kOps, nullptr,
                                                               data_.get(), &reserve),
          "cudnnGetBatchNormalizationTrainingExReserveSpaceSize");
    if (std::max(work, back) > device()->workspace.bytes) {
      throw GpuError("batch norm: cuDNN needs more workspace than allowed; give a larger --workspace");
    }
    device()->workspace.use(std::max(work, back));
    work_ = work;
    back_work_ = back;
    reserve_bytes_ = reserve;
    reserve_ = allocate_bytes(reserve, stream());
  }

  void compute() {
    float* mean = running("running_mean");
    float* variance = running("running_variance");
    check(cudnnBatchNormalizationForwardTrainingEx(
              device()->dnn.get(), mode(), kOps, &kOne, &kZero, data_.get(), source_.data(), nullptr, nullptr,
              data_.get(), result().data(), statistics_.get(), scale(), value("shift", 0), kBatchWeight, mean,
              variance, kEpsilon, mean_.data(), inverse_.data(), nullptr, device()->workspace.data(), work_,
              reserve_.get(), reserve_bytes_),
          "cudnnBatchNormalizationForwardTrainingEx");
  }

  void connect() override {
    Steps& steps = wanted() ? backward_data_ : backward_weights_;
    const CudnnTensor dy = output_gradient(steps, source_.order());
    const CudnnTensor dx = make_input_gradient(source_.shape(), source_.order());
    if (site().with_relu) return connect_with_relu(steps, dy, dx);
    if (own_kernels()) {
      steps.emplace_back([this, dy, dx] {
        batch_norm_backward(channels(), arrays(), source_.data(), dy.data(), dx.data(), gradient("scale", 1),
                            gradient("shift", 2), partial(), stream());
      });
      return;
    }
    steps.emplace_back([this, dy, dx] { compute_back(dy, dx); });
  }

  void compute_back(const CudnnTensor& dy, const CudnnTensor& dx) {
    check(cudnnBatchNormalizationBackwardEx(
              device()->dnn.get(), mode(), kOps, &kOne, &kZero, &kOne, &kZero, data_.get(), source_.data(),
              nullptr, nullptr, data_.get(), dy.data(), nullptr, nullptr, data_.get(), dx.data(),
              statistics_.get(), scale(), value("shift", 0), gradient("scale", 1), gradient("shift", 2),
              kEpsilon, mean_.data(), inverse_.data(), nullptr, device()->workspace.data(), back_work_,
              reserve_.get(), reserve_bytes_),
          "cudnnBatchNormalizationBackwardEx");
  }

  CudnnTensor source_, added_, mean_, inverse_, ones_, unused_;
  TensorDesc data_, statistics_;
  std::size_t work_ = 0, back_work_ = 0, reserve_bytes_ = 0;
  std::shared_ptr<void> reserve_;
};

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
      synchronized_batch_norm_sums(channels(), source_.data(), float_data(sums_), partial(), stream());
      if (!sums_deferred_) finish(Pass::forward, own_count());
    });
  }

  std::span<float> partial_sums(Pass) override { return std::span(float_data(sums_), sums_.elements()); }
  void defer_sums() override { sums_deferred_ = true; }
  void finish(Pass pass) override { finish(pass, site().statistics_count); }

 private:
  std::int64_t channel_count() const { return layer().input.front(); }
  Scratch partial() const { return {device()->workspace.data(), device()->workspace.bytes}; }

  Channels channels() const {
    const std::int64_t c = channel_count(), all = source_.elements();
    if (source_.order() == Order::channels_last) return {all / c, c, 1, element()};
    return {batch(), c, all / (batch() * c), element()};
  }
  double own_count() const { return channels().outer * channels().inner; }

  /// The model's array with this name; null if there is none.
  float* value(const char* name) {
    const int found = find_parameter(name);
    return found < 0 ? nullptr : parameter(found).value;
  }
  BatchNormArrays arrays() {
    const float *scale = value("scale"), *shift = value("shift");
    return {scale == nullptr ? float_data(ones_) : scale,
            shift == nullptr ? float_data(zeros_) : shift,
            float_data(mean_),
            float_data(inverse_),
            value("running_mean"),
            value("running_variance")};
  }

  void finish(Pass pass, double count) {
    if (pass == Pass::forward)
      return synchronized_batch_norm_forward(channels(), arrays(), float_data(sums_), count, source_.data(),
                                             result().data(), stream());
    synchronized_batch_norm_backward(channels(), arrays(), float_data(sums_), count, source_.data(),
                                     errors_.data(), result_.data(), stream());
  }

  void connect() override {
    Steps& steps = wanted() ? backward_data_ : backward_weights_;
    errors_ = output_gradient(steps, source_.order());
    result_ = make_input_gradient(source_.shape(), source_.order());
    const auto pass = wanted() ? Pass::backward_data : Pass::backward_weights;
    steps.emplace_back([this, pass] {
      synchronized_batch_norm_sums_back(channels(), arrays(), source_.data(), errors_.data(),
                                        float_data(sums_), partial(), stream());
      keep_gradient("shift", float_data(sums_));
      keep_gradient("scale", float_data(sums_) + channel_count());
      if (!sums_deferred_) finish(pass, own_count());
    });
  }

  /// Copies a gradient of the own part; training all-reduces it later.
  void keep_gradient(const char* name, const float* from) {
    const int found = find_parameter(name);
    if (found < 0) return;
    check(cudaMemcpyAsync(parameter(found).gradient, from, channel_count() * sizeof(float),
                          cudaMemcpyDeviceToDevice, stream()),
          "cudaMemcpyAsync");
  }

  CudnnTensor source_, mean_, inverse_, ones_, zeros_, sums_, errors_, result_;
  bool sums_deferred_ = false;
};

}  // namespace

std::unique_ptr<LayerKernel> make_batch_norm(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<BatchNorm>(std::move(device), site);
}

std::unique_ptr<LayerKernel> make_synchronized_batch_norm(std::shared_ptr<Device> device,
                                                          const LayerSite& site) {
  return std::make_unique<SynchronizedBatchNorm>(std::move(device), site);
}

namespace {

/// Normalizes over the last dimension, then applies scale and shift.
class LayerNorm final : public CudnnLayer {
 public:
  LayerNorm(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site),
        scale_(add_parameter()),
        shift_(add_parameter()),
        source_(reordered(forward_, input(), Order::row_major)),
        mean_(float_scratch({rows().count})),
        inverse_(float_scratch({rows().count})) {
    make_output(source_.shape());
    forward_.emplace_back([this, y = result().data()] {
      layer_norm_forward(rows(), source_.data(), scale_.value, shift_.value, y, float_data(mean_),
                         float_data(inverse_), stream());
    });
  }

 private:
  Rows rows() const {
    const std::int64_t length = source_.shape().back();
    return {source_.elements() / length, length, element()};
  }

  void connect() override {
    Steps& first = wanted() ? backward_data_ : backward_weights_;
    const CudnnTensor dy = output_gradient(first, Order::row_major);
    if (wanted()) {
      const CudnnTensor dx = make_input_gradient(source_.shape(), Order::row_major);
      backward_data_.emplace_back([this, dy, dx] {
        layer_norm_backward(rows(), source_.data(), dy.data(), scale_.value, float_data(mean_),
                            float_data(inverse_), dx.data(), stream());
      });
    }
    backward_weights_.emplace_back([this, dy] {
      const Channels shape{rows().count, rows().length, 1, element()};
      const Scratch partial{device()->workspace.data(), device()->workspace.bytes};
      layer_norm_parameters(shape, source_.data(), dy.data(), float_data(mean_), float_data(inverse_),
                            scale_.gradient, shift_.gradient, partial, stream());
    });
  }

  Parameter &scale_, &shift_;
  CudnnTensor source_, mean_, inverse_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_layer_norm(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<LayerNorm>(std::move(device), site);
}

}  // namespace stepcast::cudnn
