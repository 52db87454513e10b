#pragma once

#include "kernels/cudnn/runtime/tensor.hpp"

namespace stepcast::cudnn {

/// The windows of a pooling layer between two images.
/// @throws InputError for windows of more than 65536 elements
PoolShape pool_shape(const Layer& layer, const std::vector<std::int64_t>& pad_before, const CudnnTensor& from,
                     const CudnnTensor& to);

}  // namespace stepcast::cudnn
