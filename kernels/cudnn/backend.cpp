#include "kernels/cudnn/backend.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "kernels/cudnn/elements.hpp"
#include "kernels/cudnn/gpu_memory.hpp"
#include "kernels/cudnn/kinds.hpp"
#include "kernels/cudnn/updates.hpp"

namespace stepcast {
namespace cudnn {
namespace {

using MakeKernel = std::unique_ptr<LayerKernel> (*)(std::shared_ptr<Device>, const LayerSite&);

/// Null for layers that need nothing of other devices.
MakeKernel group_maker(const LayerSite& site) {
  const LayerKind kind = site.layer->kind;
  if (kind == LayerKind::batch_norm && site.statistics_count > 0) return make_group_batch_norm;
  if (kind == LayerKind::softmax_cross_entropy && site.share != nullptr) return make_shared_softmax_loss;
  if (site.cut == nullptr) return nullptr;
  if (kind == LayerKind::convolution) return make_cut_convolution;
  return kind == LayerKind::average_pool || kind == LayerKind::max_pool ? make_cut_pool : nullptr;
}

MakeKernel maker(LayerKind kind) {
  switch (kind) {
    case LayerKind::convolution:
      return make_convolution;
    case LayerKind::dense:
      return make_dense;
    case LayerKind::embedding:
      return make_embedding;
    case LayerKind::batch_norm:
      return make_batch_norm;
    case LayerKind::layer_norm:
      return make_layer_norm;
    case LayerKind::relu:
    case LayerKind::leaky_relu:
    case LayerKind::sigmoid:
    case LayerKind::tanh:
    case LayerKind::elu:
    case LayerKind::gelu:
      return make_activation;
    case LayerKind::max_pool:
    case LayerKind::average_pool:
      return make_pool;
    case LayerKind::add:
      return make_add;
    case LayerKind::up_sample:
      return make_up_sample;
    case LayerKind::reshape:
      return make_reshape;
    case LayerKind::dropout:
      return make_dropout;
    case LayerKind::lstm:
    case LayerKind::gru:
      return make_recurrent;
    case LayerKind::attention:
      return make_attention;
    case LayerKind::softmax_cross_entropy:
      return make_softmax_loss;
    case LayerKind::sigmoid_cross_entropy:
    case LayerKind::mean_squared_error:
      return make_element_loss;
    case LayerKind::locally_connected:
      break;
  }
  return nullptr;
}

class CudnnBackend final : public Backend {
 public:
  explicit CudnnBackend(std::shared_ptr<Device> device) : device_(std::move(device)), memory_(device_) {}

  std::string library() const override {
    const std::size_t version = cudnnGetVersion();
    return fmt::format("cuDNN {}.{}.{}, CUDA {}.{}", version / 10000, version / 100 % 100, version % 100,
                       CUDART_VERSION / 1000, CUDART_VERSION / 10 % 100);
  }

  std::string device() const override { return device_->properties.name; }

  /// fp32, whatever the precision: what a layer reads in another way, it converts, as PyTorch's autocast
  /// does.
  std::unique_ptr<Tensor> make_tensor(const Shape& shape) override {
    const bool nhwc = shape.size() == 4 && device_->options.layout == ImageLayout::nhwc;
    return std::make_unique<CudnnTensor>(device_, shape, Element::f32,
                                         nhwc ? Order::channels_last : Order::row_major);
  }

  std::unique_ptr<LayerKernel> make_kernel(const LayerSite& site) override {
    const Layer& layer = *site.layer;
    const MakeKernel in_group = group_maker(site), make = in_group ? in_group : maker(layer.kind);
    if (make == nullptr) {
      throw InputError(
          fmt::format("layer {}: cuDNN has no {} kernel here", layer.name, to_string(layer.kind)));
    }
    try {
      return make(device_, site);
    } catch (const GpuError& error) {
      throw InputError(fmt::format("layer {}: {}", layer.name, error.what()));
    }
  }

  std::shared_ptr<float> allocate(std::size_t elements) override { return memory_.allocate(elements); }

  void update(const Optimizer& optimizer, const UpdateArrays& arrays) override {
    cudnn::update(optimizer, arrays, device_->stream.get());
  }

  void clear(float* memory, std::size_t elements) override {
    check(cudaMemsetAsync(memory, 0, elements * sizeof(float), device_->stream.get()), "cudaMemsetAsync");
  }

  void add(const float* terms, float* sum, std::size_t elements) override {
    if (elements == 0) return;  // a grid of no blocks is an error
    cudnn::sum({sum, terms}, sum, Element::f32, static_cast<std::int64_t>(elements), device_->stream.get());
  }

  void copy_out(const Tensor& from, float* to) override {
    const auto& tensor = dynamic_cast<const CudnnTensor&>(from);
    move_elements(move_out_of(tensor), tensor.data(), to, device_->stream.get());
  }

  void copy_in(const float* from, Tensor& to) override {
    const auto& tensor = dynamic_cast<const CudnnTensor&>(to);
    Move move = move_out_of(tensor);
    std::swap(move.from_stride, move.to_stride);
    std::swap(move.from_element, move.to_element);
    move_elements(move, from, tensor.data(), device_->stream.get());
  }

  void move(const BoxMove& box, const float* from, float* to) override {
    Move all{.from_offset = box.from_offset, .to_offset = box.to_offset};
    const auto last = [](const std::vector<std::int64_t>& values, auto& sides) {
      std::copy(values.begin(), values.end(), sides.end() - static_cast<std::ptrdiff_t>(values.size()));
    };
    last(box.size, all.size);
    last(box.from_stride, all.from_stride);
    last(box.to_stride, all.to_stride);
    move_elements(all, from, to, device_->stream.get());
  }

  void begin_thread() override { check(cudaSetDevice(device_->options.device), "cudaSetDevice"); }

  void finish() override { check(cudaStreamSynchronize(device_->stream.get()), "cudaStreamSynchronize"); }

  DeviceMemory* device_memory() override { return &memory_; }

 private:
  std::shared_ptr<Device> device_;
  GpuMemory memory_;
};

}  // namespace

std::unique_ptr<Backend> make_backend(std::shared_ptr<Device> device) {
  return std::make_unique<CudnnBackend>(std::move(device));
}

}  // namespace cudnn

std::unique_ptr<Backend> make_cudnn_backend(const GpuOptions& options) {
  return cudnn::make_backend(std::make_shared<cudnn::Device>(options));
}

}  // namespace stepcast
