#pragma once

#include <cudnn.h>

#include <cstdint>
#include <vector>

/// What descriptors of the pretended cuDNN hold.
namespace stepcast::pretended {

using Sizes = std::vector<int>;

struct Tensor {
  cudnnDataType_t type{};
  Sizes dims, strides;

  std::int64_t at(const Sizes& place) const {
    std::int64_t found = 0;
    for (std::size_t i = 0; i < place.size(); ++i) found += std::int64_t{place[i]} * strides[i];
    return found;
  }
  std::size_t bytes() const {
    std::size_t last = 1;
    for (std::size_t i = 0; i < dims.size(); ++i)
      last += static_cast<std::size_t>(dims[i] - 1) * static_cast<std::size_t>(strides[i]);
    return last * (type == CUDNN_DATA_FLOAT ? 4 : 2);
  }
};

struct Convolution {
  Sizes pad, stride, dilation;
};

inline Tensor& of(cudnnTensorDescriptor_t one) {
  return *reinterpret_cast<Tensor*>(one);
}
inline Tensor& of(cudnnFilterDescriptor_t one) {
  return *reinterpret_cast<Tensor*>(one);
}
inline Convolution& of(cudnnConvolutionDescriptor_t one) {
  return *reinterpret_cast<Convolution*>(one);
}

}  // namespace stepcast::pretended
