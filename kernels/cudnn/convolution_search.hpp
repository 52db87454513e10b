#pragma once

#include <string>

#include "kernels/cudnn/device.hpp"
#include "kernels/cudnn/tensor.hpp"

namespace stepcast::cudnn {

using FilterDesc = Owned<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
using ConvolutionDesc = Owned<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;

/// One convolution as cuDNN's three calls see it.
struct ConvolutionCall {
  TensorDesc x, y;
  FilterDesc w;
  ConvolutionDesc convolution;
  std::string geometry;  ///< names all of it, so that equal layers are timed once
};

/// Time the algorithms on the given memory, which the outputs are written to, and take the fastest that the
/// workspace allows: cuDNN's own choice of kernels for this GPU is by rule, not by time.
/// @throws GpuError if there is none
TimedChoice fastest_forward(Device& device, const ConvolutionCall& call, const void* x, const void* w,
                            void* y);
TimedChoice fastest_backward_data(Device& device, const ConvolutionCall& call, const void* w, const void* dy,
                                  void* dx);
TimedChoice fastest_backward_filter(Device& device, const ConvolutionCall& call, const void* x,
                                    const void* dy, void* dw);

/// "forward IMPLICIT_PRECOMP_GEMM 12.3 MiB"
std::string forward_name(const TimedChoice& choice);
std::string backward_data_name(const TimedChoice& choice);
std::string backward_filter_name(const TimedChoice& choice);

}  // namespace stepcast::cudnn
