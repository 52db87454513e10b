#pragma once

#include <cstdint>

#include "kernels/cudnn/runtime/tensor.hpp"
#include "models/network/layer.hpp"

namespace stepcast::cudnn {

using RnnDesc = Owned<cudnnRNNDescriptor_t, cudnnDestroyRNNDescriptor>;
using SequenceDesc = Owned<cudnnRNNDataDescriptor_t, cudnnDestroyRNNDataDescriptor>;

/// cuDNN's descriptor of an LSTM or a GRU: standard algorithm, one bias per gate, sums in fp32.
/// @param dropout  cuDNN requires one even without dropout
RnnDesc describe_rnn(const Layer& layer, Element element, cudnnMathType_t math,
                     cudnnDropoutDescriptor_t dropout);

/// cuDNN's descriptor of `batch` sequences {steps, features} of equal length, row-major.
SequenceDesc describe_sequences(Element element, std::int64_t batch, std::int64_t steps,
                                std::int64_t features);

}  // namespace stepcast::cudnn
