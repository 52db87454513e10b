#include "kernels/cudnn/pool_shape.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "kernels/cudnn/windows.hpp"

namespace stepcast::cudnn {

PoolShape pool_shape(const Layer& layer, const std::vector<std::int64_t>& pad_before, const CudnnTensor& from,
                     const CudnnTensor& to) {
  const Window& w = layer.window;
  const PoolShape shape{.in = five(from.shape(), 1),
                        .out = five(to.shape(), 1),
                        .in_stride = five(from.strides(), 0),
                        .out_stride = five(to.strides(), 0),
                        .kernel = last_three(w.kernel, 1),
                        .stride = last_three(w.stride, 1),
                        .pad = last_three(pad_before, 0),
                        .largest = layer.kind == LayerKind::max_pool};
  if (shape.kernel[0] * shape.kernel[1] * shape.kernel[2] > 65536)
    throw InputError(fmt::format("layer {}: a pool of more than 65536 elements", layer.name));
  return shape;
}

}  // namespace stepcast::cudnn
