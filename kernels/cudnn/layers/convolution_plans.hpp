#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kernels/cudnn/runtime/device.hpp"
#include "kernels/cudnn/runtime/graph_plan.hpp"

/// Convolutions by cuDNN's graph API, which takes shapes that its older calls refuse, such as images of 3
/// channels in 2 bytes with channels innermost.
namespace stepcast::cudnn {

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

}  // namespace stepcast::cudnn
