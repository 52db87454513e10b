#include "kernels/cudnn/layer_group.hpp"

#include <algorithm>

#include "kernels/cudnn/layers/layer.hpp"

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
        elements_.back() += static_cast<double>(one.count);
        add_parts(one, pass == Pass::forward ? Element::f32 : device.element(),
                  pass == Pass::forward ? device.element() : Element::f32, parts);
      }
    }
    count_ = static_cast<int>(parts.size());
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
      const auto offset = [begin](Element element) {
        return static_cast<std::size_t>(begin) * bytes_of(element);
      };
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
