#pragma once

#include "kernels/cudnn/cuda/moves.hpp"
#include "kernels/cudnn/runtime/device.hpp"
#include "models/network/layer.hpp"

namespace stepcast::cudnn {

using RnnDesc = Owned<cudnnRNNDescriptor_t, cudnnDestroyRNNDescriptor>;

/// Copies between one of the model's arrays and cuDNN's weight space, in both directions, as lists on the
/// device.
struct WeightSegments {
  std::shared_ptr<void> into_space, out_of_space;
  int count = 0;
  std::int64_t longest = 0;

  CopySegments into() const { return {static_cast<const CopySegment*>(into_space.get()), count, longest}; }
  CopySegments out_of() const {
    return {static_cast<const CopySegment*>(out_of_space.get()), count, longest};
  }
};

/// The copies of weight_input {directions, gates, hidden, features}, weight_hidden {.., hidden} and bias {..,
/// 1}. The model's gates are i, f, g, o (LSTM) and u, r, o (GRU); cuDNN's GRU has r, u, o.
std::array<WeightSegments, 3> recurrent_weights(const Device& device, cudnnRNNDescriptor_t rnn,
                                                const Layer& layer, const void* space, std::size_t bytes);

}  // namespace stepcast::cudnn
