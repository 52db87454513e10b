#include "kernels/cudnn/backend.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "kernels/cudnn/cuda/elements.hpp"
#include "kernels/cudnn/cuda/optimizer_updates.hpp"
#include "kernels/cudnn/layers/layer.hpp"
#include "kernels/cudnn/runtime/device.hpp"
#include "kernels/network/layer_table.hpp"

namespace stepcast::cudnn {

namespace {

/// Conversions of several layers in parts, in the device's memory.
class ConversionList {
 public:
  ConversionList(const Device& device, const std::vector<CudnnLayer*>& layers, Pass pass) {
    std::vector<Conversion> parts;
    for (const CudnnLayer* layer : layers) {
      elements_.push_back(0);
      if (layer == nullptr) continue;
      for (const Conversion& one : layer->conversions(pass)) {
        elements_.back() += one.count;
        add_parts(one, pass == Pass::forward ? Element::f32 : device.element(),
                  pass == Pass::forward ? device.element() : Element::f32, parts);
      }
    }
    count_ = parts.size();
    if (parts.empty()) return;
    const std::size_t bytes = parts.size() * sizeof(Conversion);
    memory_ = allocate_bytes(bytes, device.stream.get());
    check(cudaMemcpyAsync(memory_.get(), parts.data(), bytes, cudaMemcpyHostToDevice, device.stream.get()),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(device.stream.get()), "cudaStreamSynchronize");
  }

  const std::vector<double>& elements() const { return elements_; }
  void run(const Device& device, Element from, Element to) const {
    convert_parts(static_cast<const Conversion*>(memory_.get()), count_, from, to, device.stream.get());
  }

 private:
  static void add_parts(const Conversion& whole, Element from, Element to, std::vector<Conversion>& parts) {
    for (std::int64_t begin = 0; begin < whole.count; begin += kConversionPart) {
      const auto offset = [begin](Element element) { return begin * bytes_of(element); };
      parts.push_back({static_cast<const char*>(whole.from) + offset(from),
                       static_cast<char*>(whole.to) + offset(to),
                       std::min(kConversionPart, whole.count - begin)});
    }
  }

  std::vector<double> elements_;  ///< of each layer
  std::shared_ptr<void> memory_;
  int count_ = 0;
};

class ConversionGroup final : public LayerGroup {
 public:
  ConversionGroup(std::shared_ptr<Device> device, std::vector<CudnnLayer*> layers)
      : device_(std::move(device)),
        layers_(std::move(layers)),
        weights_(*device_, layers_, Pass::forward),
        gradients_(*device_, layers_, Pass::backward_weights) {}

  std::vector<double> converted(Pass pass) const override {
    return (pass == Pass::forward ? weights_ : gradients_).elements();
  }
  void begin_forward() override {
    weights_.run(*device_, Element::f32, device_->element());
    set_converts(false);
  }
  void end_forward() override { set_converts(true); }
  void begin_backward() override { set_converts(false); }
  void end_backward() override {
    set_converts(true);
    gradients_.run(*device_, device_->element(), Element::f32);
  }

 private:
  void set_converts(bool converts) const {
    for (CudnnLayer* layer : layers_) {
      if (layer != nullptr) layer->set_converts(converts);
    }
  }

  std::shared_ptr<Device> device_;
  std::vector<CudnnLayer*> layers_;
  ConversionList weights_, gradients_;
};

}  // namespace

std::unique_ptr<LayerGroup> make_group(const std::shared_ptr<Device>& device,
                                       const std::vector<LayerKernel*>& layers) {
  if (device->element() == Element::f32) return nullptr;
  std::vector<CudnnLayer*> all;
  all.reserve(layers.size());
  for (LayerKernel* layer : layers) all.push_back(dynamic_cast<CudnnLayer*>(layer));
  return std::make_unique<ConversionGroup>(device, std::move(all));
}

}  // namespace stepcast::cudnn

namespace stepcast {

namespace cudnn {
namespace {

constexpr LayerTable<MakeKernel*> kMakers{.convolution = make_convolution,
                                          .dense = make_dense,
                                          .embedding = make_embedding,
                                          .position_embedding = make_position_embedding,
                                          .class_token = make_class_token,
                                          .first_token = make_first_token,
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

  std::unique_ptr<RecordedWork> record_work(const std::function<void()>& enqueue) override {
    if (!device_->options.graphs) return nullptr;
    return std::make_unique<WorkGraph>(device_, enqueue);
  }

  /// Always fp32: layers that compute in another precision convert their inputs, as PyTorch's autocast does.
  std::unique_ptr<Tensor> make_tensor(const Shape& shape) override {
    const bool nhwc = shape.size() == 4 && device_->options.layout == ImageLayout::nhwc;
    return std::make_unique<CudnnTensor>(device_, shape, Element::f32,
                                         nhwc ? Order::channels_last : Order::row_major);
  }

  std::unique_ptr<LayerKernel> make_kernel(const LayerSite& site) override {
    const Layer& layer = *site.layer;
    MakeKernel* const make = kMakers.of(site);
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
    cudnn::sum({sum, terms}, sum, Element::f32, elements, device_->stream.get());
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
      std::copy(values.begin(), values.end(), sides.end() - values.size());
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
