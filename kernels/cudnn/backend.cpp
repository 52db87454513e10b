#include "kernels/cudnn/backend.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "kernels/cudnn/cuda/elements.hpp"
#include "kernels/cudnn/cuda/optimizer_updates.hpp"
#include "kernels/cudnn/layer_group.hpp"
#include "kernels/cudnn/layers/layer.hpp"
#include "kernels/cudnn/runtime/gpu_memory.hpp"
#include "kernels/network/layer_table.hpp"

namespace stepcast {
namespace cudnn {
namespace {

using MakeKernel = std::unique_ptr<LayerKernel> (*)(std::shared_ptr<Device>, const LayerSite&);

constexpr LayerTable<MakeKernel> kMakers{.convolution = make_convolution,
                                         .dense = make_dense,
                                         .embedding = make_embedding,
                                         .batch_norm = make_batch_norm,
                                         .layer_norm = make_layer_norm,
                                         .activation = make_activation,
                                         .pool = make_pool,
                                         .add = make_add,
                                         .up_sample = make_up_sample,
                                         .reshape = make_reshape,
                                         .dropout = make_dropout,
                                         .recurrent = make_recurrent,
                                         .attention = make_attention,
                                         .softmax_loss = make_softmax_loss,
                                         .element_loss = make_element_loss,
                                         .spatial_convolution = make_spatial_convolution,
                                         .spatial_pool = make_spatial_pool,
                                         .synchronized_batch_norm = make_synchronized_batch_norm,
                                         .vocab_parallel_loss = make_vocab_parallel_loss};

class CudnnBackend final : public Backend {
 public:
  explicit CudnnBackend(std::shared_ptr<Device> device) : device_(std::move(device)), memory_(device_) {}

  std::string library() const override {
    const std::size_t version = cudnnGetVersion();
    return fmt::format("cuDNN {}.{}.{}, CUDA {}.{}", version / 10000, version / 100 % 100, version % 100,
                       CUDART_VERSION / 1000, CUDART_VERSION / 10 % 100);
  }

  std::string device() const override { return device_->properties.name; }
  bool fuses() const override { return device_->options.fuses; }
  std::unique_ptr<LayerGroup> make_group(const std::vector<LayerKernel*>& layers) override {
    return cudnn::make_group(device_, layers);
  }

  /// Always fp32: layers that compute in another precision convert their inputs, as PyTorch's autocast does.
  std::unique_ptr<Tensor> make_tensor(const Shape& shape) override {
    const bool nhwc = shape.size() == 4 && device_->options.layout == ImageLayout::nhwc;
    return std::make_unique<CudnnTensor>(device_, shape, Element::f32,
                                         nhwc ? Order::channels_last : Order::row_major);
  }

  std::unique_ptr<LayerKernel> make_kernel(const LayerSite& site) override {
    const Layer& layer = *site.layer;
    const MakeKernel make = kMakers.of(site);
    if (make == nullptr) {
      throw InputError(fmt::format("layer {}: kind {}{} is not supported by the cuDNN backend", layer.name,
                                   to_string(layer.kind), lacking_form(layer)));
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
    if (elements == 0) return;  // CUDA refuses a launch without blocks
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
