#include <algorithm>

#include "kernels/onednn/layers/layer.hpp"

namespace stepcast::onednn {
namespace {

/// Copies a row of the table for every token. The gradient is dense, as in most frameworks: zeros plus the
/// sums of the rows that were read.
class Embedding final : public OnednnLayer {
 public:
  Embedding(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        tokens_(reordered(forward_, input().memory(), plain(input().shape()))),
        count_(element_count(input().shape())),
        columns_(layer().output.back()) {
    const Desc table = plain(layer().parameters.at(0).shape);
    add_parameter(table, table);
    const OnednnTensor& output = make_output(plain(batched(layer().output)));
    forward_.emplace_back([this, to = output.data()] {
      for (std::int64_t i = 0; i < count_; ++i) {
        std::copy_n(parameter(0).data() + row(i) * columns_, columns_, to + i * columns_);
      }
    });
  }

 private:
  std::int64_t row(std::int64_t token) const {
    return static_cast<std::int64_t>(static_cast<const float*>(tokens_.get_data_handle())[token]);
  }

  void connect() override {
    const dnnl::memory gradient = output_gradient(backward_weights_, output_desc());
    backward_weights_.emplace_back([this, from = static_cast<const float*>(gradient.get_data_handle())] {
      float* to = parameter(0).gradient_data();
      std::fill_n(to, element_count(layer().parameters[0].shape), 0.f);
      for (std::int64_t i = 0; i < count_; ++i) {
        for (std::int64_t k = 0; k < columns_; ++k) to[row(i) * columns_ + k] += from[i * columns_ + k];
      }
    });
  }

  dnnl::memory tokens_;
  std::int64_t count_, columns_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_embedding(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Embedding>(std::move(library), site);
}

}  // namespace stepcast::onednn
