#include "kernels/cudnn/recurrent_weights.hpp"

#include <algorithm>
#include <array>
#include <vector>

#include "kernels/cudnn/tensor.hpp"

namespace stepcast::cudnn {
namespace {

/// cuDNN's number of a gate of the model.
int cudnn_gate(LayerKind kind, int gate) {
  constexpr std::array<int, 3> kGru{1, 0, 2};  // u, r, o
  return kind == LayerKind::gru ? kGru[static_cast<std::size_t>(gate)] : gate;
}

/// Start of a matrix (or bias) in the weight space [elements].
struct Place {
  std::int64_t matrix, bias;
};

Place place_of(const Device& device, cudnnRNNDescriptor_t rnn, int direction, int linear, const void* space,
               std::size_t bytes) {
  const auto matrix = make_owned<TensorDesc>(cudnnCreateTensorDescriptor, "cudnnCreateTensorDescriptor");
  const auto bias = make_owned<TensorDesc>(cudnnCreateTensorDescriptor, "cudnnCreateTensorDescriptor");
  void *matrix_at = nullptr, *bias_at = nullptr;
  check(cudnnGetRNNWeightParams(device.dnn.get(), rnn, direction, bytes, space, linear, matrix.get(),
                                &matrix_at, bias.get(), &bias_at),
        "cudnnGetRNNWeightParams");
  const auto element = static_cast<std::int64_t>(bytes_of(device.element()));
  const auto offset = [&](const void* at) {
    return at == nullptr ? -1 : (static_cast<const char*>(at) - static_cast<const char*>(space)) / element;
  };
  return {offset(matrix_at), offset(bias_at)};
}

void add(std::vector<Piece>& pieces, std::int64_t from, std::int64_t to, std::int64_t count) {
  if (to < 0) throw GpuError("cudnnGetRNNWeightParams: no place for a matrix or bias of the layer");
  pieces.push_back({from, to, count});
}

std::shared_ptr<void> on_device(const Device& device, const std::vector<Piece>& pieces) {
  const std::size_t bytes = pieces.size() * sizeof(Piece);
  auto memory = allocate_bytes(bytes, device.stream.get());
  check(cudaMemcpyAsync(memory.get(), pieces.data(), bytes, cudaMemcpyHostToDevice, device.stream.get()),
        "cudaMemcpyAsync");
  check(cudaStreamSynchronize(device.stream.get()), "cudaStreamSynchronize");
  return memory;
}

WeightPieces both_ways(const Device& device, std::vector<Piece> pieces) {
  WeightPieces result;
  result.count = static_cast<int>(pieces.size());
  for (const Piece& piece : pieces) result.longest = std::max(result.longest, piece.count);
  result.into_space = on_device(device, pieces);
  for (Piece& piece : pieces) std::swap(piece.from, piece.to);
  result.out_of_space = on_device(device, pieces);
  return result;
}

}  // namespace

std::array<WeightPieces, 3> recurrent_weights(const Device& device, cudnnRNNDescriptor_t rnn,
                                              const Layer& layer, const void* space, std::size_t bytes) {
  const std::int64_t hidden = layer.hidden, features = layer.input.back();
  const int gates = layer.kind == LayerKind::lstm ? 4 : 3;
  std::array<std::vector<Piece>, 3> pieces;
  for (int d = 0; d < (layer.bidirectional ? 2 : 1); ++d) {
    for (int gate = 0; gate < gates; ++gate) {
      const int linear = cudnn_gate(layer.kind, gate);
      const Place input = place_of(device, rnn, d, linear, space, bytes);
      const Place recurrent = place_of(device, rnn, d, gates + linear, space, bytes);
      const std::int64_t unit = d * gates + gate;
      add(pieces[0], unit * hidden * features, input.matrix, hidden * features);
      add(pieces[1], unit * hidden * hidden, recurrent.matrix, hidden * hidden);
      add(pieces[2], unit * hidden, input.bias, hidden);
    }
  }
  return {both_ways(device, pieces[0]), both_ways(device, pieces[1]), both_ways(device, pieces[2])};
}

}  // namespace stepcast::cudnn
