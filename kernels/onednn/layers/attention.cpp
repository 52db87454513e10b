#include <cmath>

#include "kernels/onednn/layers/layer.hpp"

namespace stepcast::onednn {
namespace {

constexpr float kMasked = -1e30f;  // its exponential is 0

/// softmax(Q K^T / sqrt(d)) V for every sample and head. Products are oneDNN's sgemm on strided views; the
/// probabilities of the forward pass are kept for the backward pass.
class Attention final : public OnednnLayer {
 public:
  Attention(std::shared_ptr<Library> library, const LayerSite& site)
      : OnednnLayer(std::move(library), site),
        tokens_(layer().input.front()),
        width_(layer().output.back()),
        size_(width_ / layer().heads),
        blocks_(batch() * layer().heads),
        source_(data_of(reordered(forward_, input().memory(), plain(input().shape())))),
        softmax_({dnnl::prop_kind::forward_training, rows(), 1}, engine()),
        scores_(scratch(rows())),
        probabilities_(scratch(rows())) {
    float* output = make_output(plain(batched(layer().output))).data();
    forward_.emplace_back([this] { compute_scores(); });
    call(forward_, dnnl::softmax_forward(softmax_),
         {{DNNL_ARG_SRC, scores_}, {DNNL_ARG_DST, probabilities_}});
    forward_.emplace_back([this, output] { mix_values(output); });
  }

 private:
  static float* data_of(const dnnl::memory& memory) { return static_cast<float*>(memory.get_data_handle()); }
  Desc rows() const { return plain({blocks_ * tokens_, tokens_}); }
  float scale() const { return 1 / std::sqrt(static_cast<float>(size_)); }

  /// Index of the first query (part 0), key (1) or value (2) of a block, which is one sample and head.
  std::int64_t part(std::int64_t block, std::int64_t which) const {
    const std::int64_t sample = block / layer().heads, head = block % layer().heads;
    return (sample * tokens_ * 3 + which) * width_ + head * size_;
  }
  std::int64_t out(std::int64_t block) const {
    const std::int64_t sample = block / layer().heads, head = block % layer().heads;
    return sample * tokens_ * width_ + head * size_;
  }
  std::int64_t square(std::int64_t block) const { return block * tokens_ * tokens_; }

  void compute_scores() {
    float* scores = data_of(scores_);
#pragma omp parallel for schedule(static)
    for (std::int64_t b = 0; b < blocks_; ++b) {
      dnnl::sgemm('N', 'T', tokens_, tokens_, size_, scale(), source_ + part(b, 0), 3 * width_,
                  source_ + part(b, 1), 3 * width_, 0, scores + square(b), tokens_);
      if (!layer().causal) continue;
      for (std::int64_t query = 0; query < tokens_; ++query) {
        float* row = scores + square(b) + query * tokens_;
        std::fill(row + query + 1, row + tokens_, kMasked);
      }
    }
  }

  void mix_values(float* output) {
    const float* p = data_of(probabilities_);
#pragma omp parallel for schedule(static)
    for (std::int64_t b = 0; b < blocks_; ++b) {
      dnnl::sgemm('N', 'N', tokens_, size_, tokens_, 1, p + square(b), tokens_, source_ + part(b, 2),
                  3 * width_, 0, output + out(b), width_);
    }
  }

  void connect() override {
    if (!wanted()) return;
    const float* dy = data_of(output_gradient(backward_data_, output_desc()));
    float* dx = make_input_gradient(plain(input().shape())).data();
    backward_data_.emplace_back([this, dy, dx] {
#pragma omp parallel for schedule(static)
      for (std::int64_t b = 0; b < blocks_; ++b) block_back(b, dy + out(b), dx);
    });
  }

  /// The memory of the scores, which are no longer needed, holds their gradient.
  void block_back(std::int64_t b, const float* dy, float* dx) {
    const float* p = data_of(probabilities_) + square(b);
    float* ds = data_of(scores_) + square(b);
    dnnl::sgemm('N', 'T', tokens_, tokens_, size_, 1, dy, width_, source_ + part(b, 2), 3 * width_, 0, ds,
                tokens_);
    dnnl::sgemm('T', 'N', tokens_, size_, tokens_, 1, p, tokens_, dy, width_, 0, dx + part(b, 2), 3 * width_);
    for (std::int64_t row = 0; row < tokens_; ++row) softmax_back(p + row * tokens_, ds + row * tokens_);
    dnnl::sgemm('N', 'N', tokens_, size_, tokens_, 1, ds, tokens_, source_ + part(b, 1), 3 * width_, 0,
                dx + part(b, 0), 3 * width_);
    dnnl::sgemm('T', 'N', tokens_, size_, tokens_, 1, ds, tokens_, source_ + part(b, 0), 3 * width_, 0,
                dx + part(b, 1), 3 * width_);
  }

  void softmax_back(const float* p, float* row) const {
    float mean = 0;
    for (std::int64_t i = 0; i < tokens_; ++i) mean += p[i] * row[i];
    for (std::int64_t i = 0; i < tokens_; ++i) row[i] = scale() * p[i] * (row[i] - mean);
  }

  std::int64_t tokens_, width_, size_, blocks_;
  const float* source_;
  dnnl::softmax_forward::primitive_desc softmax_;
  dnnl::memory scores_, probabilities_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_attention(std::shared_ptr<Library> library, const LayerSite& site) {
  return std::make_unique<Attention>(std::move(library), site);
}

}  // namespace stepcast::onednn
