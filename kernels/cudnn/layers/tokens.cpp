#include "kernels/cudnn/cuda/moves.hpp"
#include "kernels/cudnn/cuda/sums.hpp"
#include "kernels/cudnn/layers/layer.hpp"
#include "kernels/cudnn/runtime/tensor.hpp"

namespace stepcast::cudnn {
namespace {

/// Copies a row of the table for every token. The gradient is dense, as in most frameworks: zeros plus the
/// sums of the rows that were read, added by atomics in no fixed order.
class Embedding final : public CudnnLayer {
 public:
  Embedding(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site), table_(add_parameter()) {
    if (input().element() != Element::f32 || !input().is_stored_as(Order::row_major)) {
      throw GpuError(
          "embedding: expected row numbers in fp32 from the network's input, got the output of another "
          "layer");
    }
    const CudnnTensor& output = make_output(batched(layer().output));
    forward_.emplace_back([this, y = output.data()] {
      embedding_forward(tokens(), table_.value, y, element(), count(), columns(), stream());
    });
  }

 private:
  const float* tokens() const { return static_cast<const float*>(input().data()); }
  std::int64_t count() const { return input().elements(); }
  std::int64_t columns() const { return layer().output.back(); }

  void connect() override {
    const CudnnTensor dy = output_gradient(backward_weights_, Order::row_major);
    backward_weights_.emplace_back([this, dy] {
      check(cudaMemsetAsync(table_.gradient, 0, table_.elements() * sizeof(float), stream()),
            "cudaMemsetAsync");
      embedding_backward(tokens(), dy.data(), table_.gradient, element(), count(), columns(), stream());
    });
  }

  Parameter& table_;
};

/// Adds row t of a table in fp32 to token t of every sample: y[b][t][f] = x[b][t][f] + w[t][f]. The error
/// signal of x is that of y, without a copy. Moves 2 n e bytes forward, n e for the table's gradient, and the
/// table.
class PositionEmbedding final : public CudnnLayer {
 public:
  PositionEmbedding(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site),
        table_(add_parameter()),
        source_(reordered(forward_, input(), Order::row_major)) {
    forward_.emplace_back([this, y = make_output(source_.shape()).data()] {
      add_bias(source_.data(), y, table_.value, element(), batch() * used(), 1, used(), stream());
    });
  }

 private:
  /// Elements of the rows that have a token; the table may have more.
  std::int64_t used() const { return elements(layer().input); }

  void connect() override {
    if (wanted()) share_input_gradient(output_gradient(backward_data_, Order::row_major));
    const CudnnTensor dy = output_gradient(backward_weights_, Order::row_major);
    backward_weights_.emplace_back([this, dy] {
      const auto unused = table_.elements() - used();
      check(cudaMemsetAsync(table_.gradient + used(), 0, unused * sizeof(float), stream()),
            "cudaMemsetAsync");
      channel_sums({batch(), used(), 1, element()}, dy.data(), table_.gradient,
                   {device()->workspace.data(), device()->workspace.bytes}, stream());
    });
  }

  Parameter& table_;
  CudnnTensor source_;
};

/// A copy of one row, or of all tokens, of each sample between arrays with other numbers of tokens.
Move move_of_samples(std::int64_t samples, std::int64_t length, std::int64_t from_stride,
                     std::int64_t to_stride, Element element) {
  return {.size = {1, 1, 1, samples, length},
          .from_stride = {0, 0, 0, from_stride, 1},
          .to_stride = {0, 0, 0, to_stride, 1},
          .from_element = element,
          .to_element = element};
}

/// Puts a trained token before those of each sample: y[b] = {w, x[b]}. Moves 2 n e bytes in each direction,
/// and for the token's gradient those of one token of each sample.
class ClassToken final : public CudnnLayer {
 public:
  ClassToken(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site),
        token_(add_parameter()),
        source_(reordered(forward_, input(), Order::row_major)) {
    const CudnnTensor& y = make_output(batched(layer().output));
    Move first = move_of_samples(batch(), features(), 0, row(), element()), others = tokens();
    first.from_element = Element::f32;
    std::swap(others.from_stride, others.to_stride);
    std::swap(others.from_offset, others.to_offset);
    forward_.emplace_back([this, first, others, y = y.data()] {
      move_elements(first, token_.value, y, stream());
      move_elements(others, source_.data(), y, stream());
    });
  }

 private:
  std::int64_t features() const { return layer().output.back(); }
  std::int64_t row() const { return elements(layer().output); }
  /// From the samples of y to those of x.
  Move tokens() const {
    Move move = move_of_samples(batch(), elements(layer().input), row(), elements(layer().input), element());
    move.from_offset = features();
    return move;
  }

  void connect() override {
    if (wanted()) {
      const CudnnTensor dy = output_gradient(backward_data_, Order::row_major);
      const CudnnTensor dx = make_input_gradient(source_.shape(), Order::row_major);
      backward_data_.emplace_back(
          [this, dy, dx, move = tokens()] { move_elements(move, dy.data(), dx.data(), stream()); });
    }
    const CudnnTensor dy = output_gradient(backward_weights_, Order::row_major);
    const CudnnTensor first = scratch({batch(), features()});
    backward_weights_.emplace_back(
        [this, dy, first, move = move_of_samples(batch(), features(), row(), features(), element())] {
          move_elements(move, dy.data(), first.data(), stream());
          channel_sums({batch(), features(), 1, element()}, first.data(), token_.gradient,
                       {device()->workspace.data(), device()->workspace.bytes}, stream());
        });
  }

  Parameter& token_;
  CudnnTensor source_;
};

/// The first token of every sample: y[b] = x[b][0]. Moves these tokens; the backward pass writes all of dx,
/// with zeros for the other tokens.
class FirstToken final : public CudnnLayer {
 public:
  FirstToken(std::shared_ptr<Device> device, const LayerSite& site)
      : CudnnLayer(std::move(device), site), source_(reordered(forward_, input(), Order::row_major)) {
    const CudnnTensor& output = make_output(batched(layer().output));
    forward_.emplace_back(
        [this, y = output.data(), move = move_between(elements(layer().input), features())] {
          move_elements(move, source_.data(), y, stream());
        });
  }

 private:
  std::int64_t features() const { return layer().output.back(); }
  Move move_between(std::int64_t from_stride, std::int64_t to_stride) const {
    return move_of_samples(batch(), features(), from_stride, to_stride, element());
  }

  void connect() override {
    if (!wanted()) return;
    const CudnnTensor dy = output_gradient(backward_data_, Order::row_major);
    const CudnnTensor dx = make_input_gradient(source_.shape(), Order::row_major);
    backward_data_.emplace_back([this, dy, dx, move = move_between(features(), elements(layer().input))] {
      check(cudaMemsetAsync(dx.data(), 0, dx.elements() * bytes_of(element()), stream()), "cudaMemsetAsync");
      move_elements(move, dy.data(), dx.data(), stream());
    });
  }

  CudnnTensor source_;
};

}  // namespace

std::unique_ptr<LayerKernel> make_embedding(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<Embedding>(std::move(device), site);
}

std::unique_ptr<LayerKernel> make_position_embedding(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<PositionEmbedding>(std::move(device), site);
}

std::unique_ptr<LayerKernel> make_class_token(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<ClassToken>(std::move(device), site);
}

std::unique_ptr<LayerKernel> make_first_token(std::shared_ptr<Device> device, const LayerSite& site) {
  return std::make_unique<FirstToken>(std::move(device), site);
}

}  // namespace stepcast::cudnn
