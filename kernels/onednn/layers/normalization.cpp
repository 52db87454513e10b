#include <algorithm>
#include <cmath>

#include "kernels/onednn/layers/layer.hpp"
#include "kernels/onednn/layers/spatial_layer.hpp"

namespace stepcast::onednn {

namespace {

using dnnl::normalization_flags;

constexpr float kEpsilon = 1e-5f;
constexpr float kMomentum = 0.9f;  // weight of the running statistics in each step's update

/// Batch norm with the statistics of the batch. Running statistics are updated and not used in training.
class BatchNorm final : public OnednnLayer {
 public:
  BatchNorm(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        forward_desc_({dnnl::prop_kind::forward_training, input().desc(), kEpsilon, flags()}, engine()),
        mean_(scratch(channels())),
        variance_(scratch(channels())) {
    for (std::size_t i = 0; i < layer().parameters.size(); ++i) add_parameter(channels(), channels());
    const OnednnTensor& output = make_output(forward_desc_.dst_desc());
    Arguments arguments{{DNNL_ARG_SRC, input().memory()},
                        {DNNL_ARG_DST, output.memory()},
                        {DNNL_ARG_MEAN, mean_},
                        {DNNL_ARG_VARIANCE, variance_}};
    add_scale_and_shift(arguments);
    call(forward_, dnnl::batch_normalization_forward(forward_desc_), arguments);
    update_running(find_parameter("running_mean"), mean_);
    update_running(find_parameter("running_variance"), variance_);
  }

 private:
  Desc channels() const { return plain({layer().input.front()}); }

  normalization_flags flags() const {
    auto result = normalization_flags::none;
    if (find_parameter("scale") >= 0) result |= normalization_flags::use_scale;
    if (find_parameter("shift") >= 0) result |= normalization_flags::use_shift;
    return result;
  }

  const Parameter& named(const char* name) const { return parameter(find_parameter(name)); }

  void add_scale_and_shift(Arguments& arguments) const {
    if (find_parameter("scale") >= 0) arguments[DNNL_ARG_SCALE] = named("scale").value;
    if (find_parameter("shift") >= 0) arguments[DNNL_ARG_SHIFT] = named("shift").value;
  }

  void update_running(int running, const dnnl::memory& batch_value) {
    if (running < 0) return;
    const Parameter& target = parameter(running);
    forward_.emplace_back([&target, batch_value, channels = layer().input.front()] {
      const float* value = static_cast<const float*>(batch_value.get_data_handle());
      float* average = target.data();
      for (std::int64_t i = 0; i < channels; ++i)
        average[i] = kMomentum * average[i] + (1 - kMomentum) * value[i];
    });
  }

  void connect() override {
    const Desc data = input().desc();
    const dnnl::batch_normalization_backward::primitive_desc desc(
        {dnnl::prop_kind::backward, data, data, kEpsilon, flags()}, engine(), forward_desc_);
    Steps& steps = wanted() ? backward_data_ : backward_weights_;
    Arguments arguments{{DNNL_ARG_SRC, input().memory()},
                        {DNNL_ARG_DIFF_DST, output_gradient(steps, desc.diff_dst_desc())},
                        {DNNL_ARG_MEAN, mean_},
                        {DNNL_ARG_VARIANCE, variance_},
                        {DNNL_ARG_DIFF_SRC, make_input_gradient(desc.diff_src_desc()).memory()}};
    add_scale_and_shift(arguments);
    if (find_parameter("scale") >= 0) arguments[DNNL_ARG_DIFF_SCALE] = named("scale").gradient;
    if (find_parameter("shift") >= 0) arguments[DNNL_ARG_DIFF_SHIFT] = named("shift").gradient;
    call(steps, dnnl::batch_normalization_backward(desc), arguments);
  }

  dnnl::batch_normalization_forward::primitive_desc forward_desc_;
  dnnl::memory mean_, variance_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_batch_norm(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<BatchNorm>(std::move(library), site);
}

namespace {

/// Normalizes over the last dimension, then applies scale and shift.
class LayerNorm final : public OnednnLayer {
 public:
  LayerNorm(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        layout_(row_layout(input().desc())),
        source_(reordered(forward_, input().memory(), layout_)),
        forward_desc_({dnnl::prop_kind::forward_training, matrix(), kEpsilon, flags()}, engine()),
        mean_(scratch(forward_desc_.mean_desc())),
        variance_(scratch(forward_desc_.variance_desc())) {
    const Desc features = plain({layer().input.back()});
    for (std::size_t i = 0; i < layer().parameters.size(); ++i) add_parameter(features, features);
    call(forward_, dnnl::layer_normalization_forward(forward_desc_),
         {{DNNL_ARG_SRC, as_matrix(source_)},
          {DNNL_ARG_DST, as_matrix(make_output(layout_).memory())},
          {DNNL_ARG_MEAN, mean_},
          {DNNL_ARG_VARIANCE, variance_},
          {DNNL_ARG_SCALE, parameter(0).value},
          {DNNL_ARG_SHIFT, parameter(1).value}});
  }

 private:
  Desc matrix() const { return as_matrix(source_).get_desc(); }
  normalization_flags flags() const {
    return normalization_flags::use_scale | normalization_flags::use_shift;
  }

  void connect() override {
    const dnnl::layer_normalization_backward::primitive_desc desc(
        {dnnl::prop_kind::backward, matrix(), matrix(), kEpsilon, flags()}, engine(), forward_desc_);
    Steps& steps = wanted() ? backward_data_ : backward_weights_;
    call(steps, dnnl::layer_normalization_backward(desc),
         {{DNNL_ARG_SRC, as_matrix(source_)},
          {DNNL_ARG_DIFF_DST, as_matrix(output_gradient(steps, layout_))},
          {DNNL_ARG_MEAN, mean_},
          {DNNL_ARG_VARIANCE, variance_},
          {DNNL_ARG_SCALE, parameter(0).value},
          {DNNL_ARG_SHIFT, parameter(1).value},
          {DNNL_ARG_DIFF_SRC, as_matrix(make_input_gradient(layout_).memory())},
          {DNNL_ARG_DIFF_SCALE, parameter(0).gradient},
          {DNNL_ARG_DIFF_SHIFT, parameter(1).gradient}});
  }

  Desc layout_;
  dnnl::memory source_;
  dnnl::layer_normalization_forward::primitive_desc forward_desc_;
  dnnl::memory mean_, variance_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_layer_norm(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<LayerNorm>(std::move(library), site);
}

namespace {

constexpr double kSyncEpsilon = 1e-5;
constexpr float kSyncMomentum = 0.9f;  // weight of the running statistics in each step's update

/// A map's memory as [samples][blocks of channels][positions][channels of a block].
struct ChannelBlocks {
  std::int64_t samples, blocks, positions, block;
  std::int64_t sample_stride, block_stride, position_stride;

  explicit ChannelBlocks(const Desc& desc, const MapView& map)
      : samples(map.samples),
        blocks((map.channels + map.block - 1) / map.block),
        positions(1),
        block(map.block),
        sample_stride(map.sample_stride),
        block_stride(map.block_stride),
        position_stride(map.strides.empty() ? 0 : map.strides.back()) {
    for (std::size_t i = 2; i < desc.dims().size(); ++i) positions *= desc.dims()[i];
  }

  /// Number of channels including the padding of the last block.
  std::size_t stored() const { return blocks * block; }

  /// Calls visit(offset of the first position, first channel) for every block of every sample.
  template <class Visit>
  void for_each(const Visit& visit) const {
    for (std::int64_t n = 0; n < samples; ++n) {
      for (std::int64_t b = 0; b < blocks; ++b) visit(n * sample_stride + b * block_stride, b * block);
    }
  }
};

/// Batch norm with statistics over several ranks: each rank sums over its own part, an all-reduce adds up
/// `statistics_`, and then the pass goes on. With n elements per channel and x^ = (x - mean) / sigma:
///
///   forward   sums of x and x^2            then y = scale x^ + shift
///   backward  sums of dy and dy x^         then dx = scale / sigma (dy - sum(dy) / n - x^ sum(dy x^) / n)
/// The sums over the rank's own part are the gradients of shift and scale, which training all-reduces later.
class SynchronizedBatchNorm final : public OnednnLayer {
 public:
  SynchronizedBatchNorm(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        channels_(layer().input.front()),
        blocks_(input().desc(), view_of(input().memory(), std::vector<Rows>(layer().input.size() - 1))),
        statistics_(2 * channels_),
        mean_(channels_),
        inverse_(channels_) {
    for (std::size_t i = 0; i < layer().parameters.size(); ++i)
      add_parameter(plain({layer().input.front()}), plain({layer().input.front()}));
    output_data_ = make_output(input().desc()).data();
    forward_.emplace_back([this] {
      sum(input().data(), input().data());
      if (!sums_deferred_) normalize(own_count());
    });
  }

  std::span<float> partial_sums(Pass) override { return statistics_; }
  void defer_sums() override { sums_deferred_ = true; }
  void finish(Pass pass) override {
    const double count = site().statistics_count;
    pass == Pass::forward ? normalize(count) : propagate(count);
  }

 private:
  double own_count() const { return blocks_.samples * blocks_.positions; }

  float* values(const char* name) const {
    const int found = find_parameter(name);
    return found < 0 ? nullptr : parameter(found).data();
  }

  /// Writes the sums of a and of a x b over every channel to `statistics_`.
  void sum(const float* a, const float* b) {
    std::vector<double> sums(2 * blocks_.stored());
    double *first = sums.data(), *second = first + blocks_.stored();
    blocks_.for_each([&](std::int64_t offset, std::int64_t channel) {
      sum_block(a + offset, b + offset, first + channel, second + channel);
    });
    for (std::size_t c = 0; c < channels_; ++c) {
      statistics_[c] = first[c];
      statistics_[channels_ + c] = second[c];
    }
  }

  /// Sums 256 positions at a time in single precision, and these sums in double precision.
  void sum_block(const float* a, const float* b, double* first, double* second) const {
    constexpr std::int64_t kAtOnce = 256;
    const std::size_t block = blocks_.block;
    std::vector<float> one(block), two(block);
    for (std::int64_t from = 0; from < blocks_.positions; from += kAtOnce) {
      std::fill(one.begin(), one.end(), 0.0f);
      std::fill(two.begin(), two.end(), 0.0f);
      const std::int64_t last = std::min(blocks_.positions, from + kAtOnce);
      for (std::int64_t p = from; p < last; ++p) {
        const float *x = a + p * blocks_.position_stride, *y = b + p * blocks_.position_stride;
        for (std::size_t i = 0; i < block; ++i) {
          one[i] += x[i];
          two[i] += x[i] * y[i];
        }
      }
      for (std::size_t i = 0; i < block; ++i) {
        first[i] += one[i];
        second[i] += two[i];
      }
    }
  }

  struct Term {
    const float* x;
    const std::vector<float>& factor;  ///< of each channel
  };

  /// result = a.factor a.x + b.factor b.x + constant, channel by channel.
  void combine(const Term& a, const Term& b, const std::vector<float>& constant, float* result) const {
    blocks_.for_each([&](std::int64_t offset, std::int64_t channel) {
      const float *f = a.factor.data() + channel, *g = b.factor.data() + channel,
                  *h = constant.data() + channel;
      for (std::int64_t p = 0; p < blocks_.positions; ++p) {
        const std::int64_t at = offset + p * blocks_.position_stride;
        for (std::int64_t i = 0; i < blocks_.block; ++i)
          result[at + i] = f[i] * a.x[at + i] + g[i] * b.x[at + i] + h[i];
      }
    });
  }

  void normalize(double count) {
    std::vector<float> factor(blocks_.stored()), none(blocks_.stored()), constant(blocks_.stored());
    float *running_mean = values("running_mean"), *running_variance = values("running_variance");
    const float *scale = values("scale"), *shift = values("shift");
    for (std::size_t c = 0; c < channels_; ++c) {
      mean_[c] = statistics_[c] / count;
      const double variance = std::max(0.0, statistics_[channels_ + c] / count - mean_[c] * mean_[c]);
      inverse_[c] = 1 / std::sqrt(variance + kSyncEpsilon);
      const double of_x = inverse_[c] * (scale != nullptr ? scale[c] : 1);
      factor[c] = of_x;
      constant[c] = (shift != nullptr ? shift[c] : 0) - of_x * mean_[c];
      update_running(running_mean, c, mean_[c]);
      update_running(running_variance, c, variance);
    }
    combine({input().data(), factor}, {input().data(), none}, constant, output_data_);
  }

  static void update_running(float* running, std::size_t channel, double value) {
    if (running == nullptr) return;
    running[channel] = kSyncMomentum * running[channel] + (1 - kSyncMomentum) * static_cast<float>(value);
  }

  void connect() override {
    Steps& steps = wanted() ? backward_data_ : backward_weights_;
    errors_ = output_gradient(steps, input().desc());
    result_ = make_input_gradient(input().desc()).data();
    steps.emplace_back([this] {
      sum(errors(), input().data());
      std::vector<float>& sums = statistics_;
      for (std::size_t c = 0; c < channels_; ++c)
        sums[channels_ + c] = inverse_[c] * (sums[channels_ + c] - mean_[c] * sums[c]);
      write_gradient("shift", sums.data());
      write_gradient("scale", sums.data() + channels_);
      if (!sums_deferred_) propagate(own_count());
    });
  }

  void write_gradient(const char* name, const float* from) const {
    const int found = find_parameter(name);
    if (found >= 0) std::copy_n(from, channels_, parameter(found).gradient_data());
  }

  void propagate(double count) {
    std::vector<float> of_error(blocks_.stored()), of_x(blocks_.stored()), constant(blocks_.stored());
    const float* scale = values("scale");
    for (std::size_t c = 0; c < channels_; ++c) {
      const double factor = inverse_[c] * (scale != nullptr ? scale[c] : 1);
      const double slope = -factor * inverse_[c] * statistics_[channels_ + c] / count;
      of_error[c] = factor;
      of_x[c] = slope;
      constant[c] = -factor * statistics_[c] / count - slope * mean_[c];
    }
    combine({errors(), of_error}, {input().data(), of_x}, constant, result_);
  }

  const float* errors() const { return static_cast<const float*>(errors_.get_data_handle()); }

  std::size_t channels_;
  ChannelBlocks blocks_;
  std::vector<float> statistics_;
  std::vector<double> mean_, inverse_;
  bool sums_deferred_ = false;
  dnnl::memory errors_;
  float* output_data_ = nullptr;
  float* result_ = nullptr;
};

}  // namespace

std::unique_ptr<LayerKernel> make_synchronized_batch_norm(std::shared_ptr<Library> library,
                                                          const LayerSite& site) {
  return std::make_unique<SynchronizedBatchNorm>(std::move(library), site);
}

}  // namespace stepcast::onednn
