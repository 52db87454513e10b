#include <fmt/format.h>

#include <algorithm>

#include "core/error.hpp"
#include "kernels/memory.hpp"
#include "kernels/onednn/kinds.hpp"
#include "kernels/processor.hpp"

namespace stepcast {
namespace onednn {
namespace {

using MakeKernel = std::unique_ptr<LayerKernel> (*)(std::shared_ptr<Library>, const LayerSite&);

/// Of layers of a cut sample, and of a shared network, that need what other devices have; null for all
/// others.
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
    case LayerKind::embedding:
      return make_embedding;
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
    default:
      return nullptr;
  }
}

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
    const MakeKernel in_group = group_maker(site), make = in_group ? in_group : maker(layer.kind);
    if (make == nullptr) {
      throw InputError(
          fmt::format("layer {}: oneDNN has no {} kernel here", layer.name, to_string(layer.kind)));
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

  /// A rank has one core.
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
