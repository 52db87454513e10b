#pragma once

#include <string>

#include "kernels/cudnn/runtime/device.hpp"
#include "kernels/cudnn/runtime/tensor.hpp"

namespace stepcast::cudnn {

using FilterDesc = Owned<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
using ConvolutionDesc = Owned<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;

/// The descriptors of one convolution for cuDNN's three calls.
struct ConvolutionCall {
  TensorDesc x, y;
  FilterDesc w;
  ConvolutionDesc convolution;
  std::string geometry;  ///< text that identifies shapes, filter, strides and padding, so that equal layers
                         ///< are timed once
};

// These functions time the algorithms on the given memory, which they overwrite with outputs, and return the
// fastest that the workspace allows; cuDNN's heuristic chooses without timing. They throw GpuError if no
// algorithm works.
TimedChoice fastest_forward(Device& device, const ConvolutionCall& call, const void* x, const void* w,
                            void* y);
TimedChoice fastest_backward_data(Device& device, const ConvolutionCall& call, const void* w, const void* dy,
                                  void* dx);
TimedChoice fastest_backward_filter(Device& device, const ConvolutionCall& call, const void* x,
                                    const void* dy, void* dw);

/// Pass, algorithm and workspace, such as "forward IMPLICIT_PRECOMP_GEMM 12.3 MiB".
std::string forward_name(const TimedChoice& choice);
std::string backward_data_name(const TimedChoice& choice);
std::string backward_filter_name(const TimedChoice& choice);

}  // namespace stepcast::cudnn
