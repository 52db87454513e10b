#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kernels/cudnn/cuda/rows.hpp"
#include "kernels/cudnn/layers/fused_attention.hpp"
#include "kernels/cudnn/layers/layer.hpp"

namespace stepcast::cudnn {
namespace {

/// softmax(Q K^T / sqrt(d)) V for every sample and head. In 2-byte precisions cuDNN's fused kernels compute
/// it, which keep no scores. Elsewhere products are cuBLAS calls over lists of matrices; the probabilities of
/// the forward pass are kept for the backward pass. All layers of a GPU share the memory of the scores. With
/// B samples, H heads and T tokens, scores and probabilities have B H T^2 elements each; a forward pass
/// writes and reads both once, in addition to 4 B T elements of the width.
class Attention final : public CudnnLayer {
 public:
  Attention(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site),
        tokens_(layer().input.front()),
        width_(layer().output.back()),
        size_(width_ / layer().heads),
        blocks_(batch() * layer().heads),
        source_(reordered(forward_, input(), Order::row_major)) {
    make_output(batched(layer().output));
    fuses() ? compute_at_once() : compute_by_scores();
  }

 private:
  /// One matrix per sample and head: pointers to their starts, in memory of the host and of the device, and
  /// the stride between rows, which cuBLAS sees as columns.
  struct List {
    std::vector<void*> starts;
    std::shared_ptr<void> pointers;
    int stride = 0;
  };
  struct Operand {
    List list;
    bool transposed = false;
  };
  struct Sizes {
    std::int64_t m, n, k;
  };

  /// True if a fused kernel computes the layer.
  bool fuses() {
    if (!device()->options.fuses || element() == Element::f32) return false;
    std::string why;
    fused_ = FusedAttention::make(
        *device(), {batch(), layer().heads, tokens_, size_, device()->cudnn_type(), layer().causal}, why);
    note(fused_ != nullptr ? "fused, " + fused_->name() : "scores in memory: " + why);
    return fused_ != nullptr;
  }

  void compute_at_once() {
    logarithms_ = float_scratch({blocks_ * tokens_});
    forward_.emplace_back(
        [this] { fused_->forward(*device(), source_.data(), result().data(), float_data(logarithms_)); });
  }

  void compute_by_scores() {
    scores_ = CudnnTensor::within_pass(device(), {blocks_ * tokens_, tokens_}, element());
    probabilities_ = scratch({blocks_ * tokens_, tokens_});
    const List s = squares(scores_), p = squares(probabilities_), y = heads(result(), 0, width_);
    multiply(forward_, {part(source_, 1), true}, {part(source_, 0), false}, s, {tokens_, tokens_, size_},
             scale());
    forward_.emplace_back(
        [this] { softmax_rows(rows(), layer().causal, scores_.data(), probabilities_.data(), stream()); });
    multiply(forward_, {part(source_, 2), false}, {p, false}, y, {size_, tokens_, tokens_}, 1);
  }

  float scale() const { return 1 / std::sqrt(static_cast<float>(size_)); }
  Rows rows() const { return {blocks_ * tokens_, tokens_, element()}; }

  List listed(const CudnnTensor& tensor, std::int64_t stride,
              const std::function<std::int64_t(std::int64_t)>& begin) const {
    std::vector<void*> starts;
    for (std::int64_t b = 0; b < blocks_; ++b) {
      starts.push_back(static_cast<char*>(tensor.data()) + begin(b) * bytes_of(element()));
    }
    const std::size_t bytes = starts.size() * sizeof(void*);
    List list{starts, allocate_bytes(bytes, stream()), static_cast<int>(stride)};
    check(cudaMemcpyAsync(list.pointers.get(), starts.data(), bytes, cudaMemcpyHostToDevice, stream()),
          "cudaMemcpyAsync");
    check(cudaStreamSynchronize(stream()), "cudaStreamSynchronize");
    return list;
  }
  /// The columns of each head, which start at `first` in rows of `stride` elements.
  List heads(const CudnnTensor& tensor, std::int64_t first, std::int64_t stride) const {
    return listed(tensor, stride, [=, this](std::int64_t b) {
      return b / layer().heads * tokens_ * stride + first + b % layer().heads * size_;
    });
  }
  /// The matrices of queries (0), keys (1) or values (2).
  List part(const CudnnTensor& tensor, std::int64_t which) const {
    return heads(tensor, which * width_, 3 * width_);
  }
  List squares(const CudnnTensor& tensor) const {
    return listed(tensor, tokens_, [this](std::int64_t b) { return b * tokens_ * tokens_; });
  }

  /// True if the matrices are aligned as cublasGemmBatchedEx requires for tensor cores, which it cannot check
  /// itself: 16 bytes for depths that are multiples of 8, 4 bytes for even ones. Source: cuBLAS's manual on
  /// that call.
  static bool is_aligned(const std::vector<const List*>& lists, std::int64_t depth) {
    const std::uintptr_t bytes = depth % 8 == 0 ? 16 : depth % 2 == 0 ? 4 : 1;
    return std::ranges::all_of(lists, [&](const List* list) {
      return std::ranges::all_of(
          list->starts, [&](void* start) { return reinterpret_cast<std::uintptr_t>(start) % bytes == 0; });
    });
  }

  /// c = factor a b, column-major as cuBLAS sees it; one call per matrix if a batched call is not possible.
  void multiply(Steps& steps, const Operand& a, const Operand& b, const List& c, const Sizes& s,
                float factor) {
    const bool at_once = is_aligned({&a.list, &b.list, &c}, s.k);
    const std::size_t products = at_once ? 1 : c.starts.size();
    for (std::size_t i = 0; i < products; ++i) {
      steps.emplace_back(
          [=, this] { at_once ? run_all(a, b, c, s, factor) : run_one(i, a, b, c, s, factor); });
    }
  }

  static cublasOperation_t operation(const Operand& one) {
    return one.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  }

  void run_all(const Operand& a, const Operand& b, const List& c, const Sizes& s, float factor) const {
    const float zero = 0;
    const auto list = [](const List& one) { return static_cast<void* const*>(one.pointers.get()); };
    const auto type = device()->cuda_type();
    check(cublasGemmBatchedEx(device()->blas.get(), operation(a), operation(b), s.m, s.n, s.k, &factor,
                              list(a.list), type, a.list.stride, list(b.list), type, b.list.stride, &zero,
                              list(c), type, c.stride, blocks_, device()->cublas_compute(),
                              CUBLAS_GEMM_DEFAULT),
          "cublasGemmBatchedEx");
  }

  void run_one(std::size_t i, const Operand& a, const Operand& b, const List& c, const Sizes& s,
               float factor) const {
    const float zero = 0;
    const auto type = device()->cuda_type();
    check(cublasGemmEx(device()->blas.get(), operation(a), operation(b), s.m, s.n, s.k, &factor,
                       a.list.starts[i], type, a.list.stride, b.list.starts[i], type, b.list.stride, &zero,
                       c.starts[i], type, c.stride, device()->cublas_compute(), CUBLAS_GEMM_DEFAULT),
          "cublasGemmEx");
  }

  void connect() override {
    if (!wanted()) return;
    dy_ = output_gradient(backward_data_, Order::row_major);
    const CudnnTensor dx = make_input_gradient(input().shape(), Order::row_major);
    if (fused_ == nullptr) return connect_by_scores(dx);
    backward_data_.emplace_back([this, dx] {
      fused_->backward(*device(), {source_.data(), result().data(), dy_.data(),
                                   static_cast<const float*>(logarithms_.data()), dx.data()});
    });
  }

  /// The memory of the scores, which are no longer needed, holds the gradient of the probabilities and then
  /// the gradient of the scores.
  void connect_by_scores(const CudnnTensor& dx) {
    const List s = squares(scores_), p = squares(probabilities_), d = heads(dy_, 0, width_);
    multiply(backward_data_, {part(source_, 2), true}, {d, false}, s, {tokens_, tokens_, size_}, 1);
    multiply(backward_data_, {d, false}, {p, true}, part(dx, 2), {size_, tokens_, tokens_}, 1);
    backward_data_.emplace_back(
        [this] { softmax_rows_backward(rows(), scale(), probabilities_.data(), scores_.data(), stream()); });
    multiply(backward_data_, {part(source_, 1), false}, {s, false}, part(dx, 0), {size_, tokens_, tokens_},
             1);
    multiply(backward_data_, {part(source_, 0), false}, {s, true}, part(dx, 1), {size_, tokens_, tokens_}, 1);
  }

  std::int64_t tokens_, width_, size_, blocks_;
  CudnnTensor source_;
  std::unique_ptr<FusedAttention> fused_;  ///< null: by scores
  CudnnTensor logarithms_;                 ///< of the fused kernels
  CudnnTensor scores_, probabilities_;
  CudnnTensor dy_;  ///< a member because the lists point into it
};

}  // namespace

std::unique_ptr<LayerKernel> make_attention(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Attention>(std::move(device), site);
}

}  // namespace stepcast::cudnn
