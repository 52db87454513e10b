#pragma once

#include "kernels/cudnn/convolution_search.hpp"

namespace stepcast::cudnn {

/// What a convolution is apart from its two images.
struct ConvolutionShape {
  Shape filter;                ///< {k, c, spatial...}
  bool channels_last = false;  ///< the filter is stored {k, spatial, c}
  std::vector<std::int64_t> pad, stride;
};

ConvolutionCall describe_call(const Device& device, const CudnnTensor& x, const CudnnTensor& y,
                              const ConvolutionShape& shape);

/// cuDNN's three calls, started on the device's stream.
void convolve(const Device& device, const ConvolutionCall& call, const TimedChoice& how, const void* x,
              const void* w, void* y);
void convolve_back_data(const Device& device, const ConvolutionCall& call, const TimedChoice& how,
                        const void* w, const void* dy, void* dx);
void convolve_back_filter(const Device& device, const ConvolutionCall& call, const TimedChoice& how,
                          const void* x, const void* dy, void* dw);

}  // namespace stepcast::cudnn
