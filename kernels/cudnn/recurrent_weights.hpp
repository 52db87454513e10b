#pragma once

#include "kernels/cudnn/device.hpp"
#include "kernels/cudnn/moves.hpp"
#include "models/layer.hpp"

namespace stepcast::cudnn {

using RnnDesc = Owned<cudnnRNNDescriptor_t, cudnnDestroyRNNDescriptor>;

/// Where one of the model's arrays lies in cuDNN's weight space: pieces there and back, on the device.
struct WeightPieces {
  std::shared_ptr<void> into_space, out_of_space;
  int count = 0;
  std::int64_t longest = 0;

  Pieces into() const { return {static_cast<const Piece*>(into_space.get()), count, longest}; }
  Pieces out_of() const { return {static_cast<const Piece*>(out_of_space.get()), count, longest}; }
};

/// weight_input {directions, gates, hidden, features}, weight_hidden {.., hidden} and bias {.., 1}. The
/// model's gates are i, f, g, o (LSTM) and u, r, o (GRU); cuDNN's GRU has r, u, o.
std::array<WeightPieces, 3> recurrent_weights(const Device& device, cudnnRNNDescriptor_t rnn,
                                              const Layer& layer, const void* space, std::size_t bytes);

}  // namespace stepcast::cudnn
