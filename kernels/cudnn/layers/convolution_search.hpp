#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cudnn/runtime/device.hpp"
#include "kernels/cudnn/runtime/graph_plan.hpp"
#include "kernels/cudnn/runtime/tensor.hpp"

namespace stepcast::cudnn {

/// Passes of convolutions that cuDNN's graph API computes. It takes shapes that its older calls refuse, such
/// as images of 3 channels in 2 bytes with channels innermost.
enum class ConvolutionPass { forward, backward_data, backward_filter };

/// The tensors of a convolution, or their gradients, as images of at least 4 dimensions: x and y
/// {n, c, spatial...}, w {k, c / groups, spatial...}.
struct ConvolutionTensors {
  GraphTensor x, w, y;
  std::vector<std::int64_t> pad, stride;
};
/// Numbers of the tensors in a plan.
constexpr std::int64_t kX = 1, kW = 2, kY = 3;

/// Engines that may compute a pass in this precision; nothing is timed. Precision f32 takes none on tensor
/// cores, and no precision takes one that rounds fp32 inputs to 2 bytes.
std::vector<GraphEngine> engines_for(const ConvolutionTensors& tensors, ConvolutionPass pass,
                                     GpuPrecision precision, const PlanTarget& target);

/// The memory of a convolution's tensors or their gradients.
struct ConvolutionArrays {
  const void *x = nullptr, *w = nullptr, *y = nullptr;
};
void run(const GraphPlan& plan, const Device& device, const ConvolutionArrays& arrays);

/// The fastest of some ten plans within the workspace, or why there is none.
struct FastestPlan {
  std::shared_ptr<const GraphPlan> plan;
  double seconds = 0;
  std::string outcome;  ///< such as "10 plans, of which 3 cannot run: CAUSE OF THE LAST"
};
/// Times plans on these arrays, which hold drawn numbers, at clocks that have risen. Overwrites the output.
FastestPlan fastest_plan(Device& device, const ConvolutionTensors& tensors, ConvolutionPass pass,
                         const ConvolutionArrays& arrays);

/// True if an engine can compute the pass within the workspace.
bool has_plan(const Device& device, const ConvolutionTensors& tensors, ConvolutionPass pass);

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
