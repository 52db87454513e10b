#include "kernels/dropout_mask.hpp"
#include "kernels/onednn/kinds.hpp"

namespace stepcast::onednn {
namespace {

/// to[i] = from[i] / (1 - share) or 0.
struct Mask {
  std::uint32_t key;
  double share;

  void apply(const float* from, float* to, std::size_t elements) const {
    const std::uint32_t threshold = dropout_threshold(share);
    const float scale = share >= 1 ? 0 : static_cast<float>(1 / (1 - share));
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < elements; ++i) {
      to[i] = dropout_bits(key, static_cast<std::uint32_t>(i)) < threshold ? 0 : from[i] * scale;
    }
  }
};

/// Drops a share of the elements, others elements every step.
class Dropout final : public OnednnLayer {
 public:
  Dropout(std::shared_ptr<Library> library, const LayerSite& site) : OnednnLayer(std::move(library), site) {
    const OnednnTensor& output = make_output(input().desc());
    forward_.emplace_back([this, from = input().data(), to = output.data(), n = output.stored_elements()] {
      mask().apply(from, to, n);
      ++step_;
    });
  }

 private:
  Mask mask() const { return {dropout_key(site().seed, site().index, step_), layer().coefficient}; }

  void connect() override {
    if (!wanted()) return;
    const dnnl::memory gradient = output_gradient(backward_data_, output_desc());
    const OnednnTensor& result = make_input_gradient(output_desc());
    backward_data_.emplace_back([this, from = static_cast<const float*>(gradient.get_data_handle()),
                                 to = result.data(), n = result.stored_elements()] {
      const Mask last{dropout_key(site().seed, site().index, step_ - 1), layer().coefficient};
      last.apply(from, to, n);
    });
  }

  std::uint32_t step_ = 0;
};

}  // namespace

std::unique_ptr<LayerKernel> make_dropout(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Dropout>(std::move(library), site);
}

}  // namespace stepcast::onednn
