#include "kernels/onednn/backend.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "kernels/network/device_memory.hpp"
#include "kernels/network/layer_table.hpp"
#include "kernels/onednn/layers/layer.hpp"
#include "kernels/timing/host_info.hpp"

namespace stepcast {
namespace onednn {
namespace {

constexpr LayerTable<MakeKernel*> kMakers{.convolution = make_convolution,
                                          .locally_connected = make_locally_connected,
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
                                          .experts = make_experts,
                                          .spatial_convolution = make_spatial_convolution,
                                          .spatial_locally_connected = make_spatial_locally_connected,
                                          .spatial_pool = make_spatial_pool,
                                          .synchronized_batch_norm = make_synchronized_batch_norm,
                                          .vocab_parallel_loss = make_vocab_parallel_loss};

class OnednnBackend final : public Backend {
 public:
  std::string library() const override {
    const dnnl_version_t* version = dnnl::version();
    return fmt::format("oneDNN {}.{}.{}", version->major, version->minor, version->patch);
  }

  std::string device() const override { return processor_name(); }

  std::unique_ptr<Tensor> make_tensor(const Shape& shape) override {
    return std::make_unique<OnednnTensor>(library_, plain(shape));
  }

  std::unique_ptr<Tensor> make_activations(const Shape& shape) override {
    return std::make_unique<OnednnTensor>(library_, as_convolved(*library_, shape));
  }

  std::unique_ptr<LayerKernel> make_kernel(const LayerSite& site) override {
    const Layer& layer = *site.layer;
    MakeKernel* const make = kMakers.of(site);
    if (make == nullptr) {
      throw InputError(fmt::format("layer {}: kind {}{} is not supported by the oneDNN backend", layer.name,
                                   to_string(layer.kind), lacking_form(layer)));
    }
    try {
      return make(library_, site);
    } catch (const dnnl::error& error) {
      throw InputError(fmt::format("layer {}: oneDNN: {}", layer.name, error.what()));
    }
  }

  std::shared_ptr<float> allocate(std::size_t elements) override { return allocate_floats(elements); }

  void update(const Optimizer& optimizer, const UpdateArrays& arrays) override {
    update_on_cpu(optimizer, arrays);
  }

  void clear(float* memory, std::size_t elements) override { std::fill_n(memory, elements, 0.0F); }

  void add(const float* terms, float* sum, std::size_t elements) override {
    for (std::size_t i = 0; i < elements; ++i) sum[i] += terms[i];
  }

  /// Further threads compute on one core: a rank has no more.
  void begin_thread() override { set_kernel_threads(1); }

  void finish() override { library_->stream.wait(); }

 private:
  std::shared_ptr<Library> library_ = std::make_shared<Library>();
};

}  // namespace
}  // namespace onednn

std::unique_ptr<Backend> make_onednn_backend() {
  return std::make_unique<onednn::OnednnBackend>();
}

}  // namespace stepcast
