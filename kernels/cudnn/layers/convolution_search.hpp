#pragma once

#include <string>

#include "kernels/cudnn/layers/convolution_plans.hpp"
#include "kernels/cudnn/runtime/device.hpp"
#include "kernels/cudnn/runtime/tensor.hpp"

namespace stepcast::cudnn {

using FilterDesc = Owned<cudnnFilterDescriptor_t, cudnnDestroyFilterDescriptor>;
using ConvolutionDesc = Owned<cudnnConvolutionDescriptor_t, cudnnDestroyConvolutionDescriptor>;

/// The descriptors of one convolution for cuDNN's three calls, and its tensors for the graph API.
struct ConvolutionCall {
  TensorDesc x, y;
  FilterDesc w;
  ConvolutionDesc convolution;
  std::string geometry;  ///< text that identifies shapes, filter, strides and padding, so that equal layers
                         ///< are timed once
  std::size_t x_bytes = 0, y_bytes = 0, w_bytes = 0;
  ConvolutionTensors tensors;
};

// These functions time some ten plans of the graph API on drawn inputs of their own and on the given memory,
// which they overwrite with outputs, at clocks that have risen, and return the fastest that the workspace
// allows. In f32, or where no plan runs, they time the algorithms of the three calls too. Precision f32 takes
// algorithms without tensor cores alone.
// They throw GpuError, with every candidate's outcome, if nothing works.
TimedChoice fastest_forward(Device& device, const ConvolutionCall& call, void* y);
TimedChoice fastest_backward_data(Device& device, const ConvolutionCall& call, void* dx);
TimedChoice fastest_backward_filter(Device& device, const ConvolutionCall& call, void* dw);

/// True if cuDNN has an algorithm or a plan for each of the three passes within the workspace. It asks for
/// workspaces and computes nothing.
bool is_supported(const Device& device, const ConvolutionCall& call);

/// Pass, algorithm and workspace, such as "forward IMPLICIT_PRECOMP_GEMM 12.3 MiB", or the engine of a plan.
std::string forward_name(const TimedChoice& choice);
std::string backward_data_name(const TimedChoice& choice);
std::string backward_filter_name(const TimedChoice& choice);

}  // namespace stepcast::cudnn
