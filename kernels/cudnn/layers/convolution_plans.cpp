#include <fmt/format.h>

#include <chrono>

#include "kernels/cudnn/layers/convolution_search.hpp"

namespace stepcast::cudnn {
namespace {

constexpr int kMostPlans = 10;
/// Time after which no further plan of a convolution is made [s]: making one may compile a kernel.
constexpr double kMostSeconds = 2;
constexpr int kTimedRuns = 3;

/// The attributes of the operation of a pass.
struct OperationNames {
  cudnnBackendDescriptorType_t type;
  cudnnBackendAttributeName_t x, w, y, convolution, alpha, beta;
};

OperationNames names_of(ConvolutionPass pass) {
  switch (pass) {
    case ConvolutionPass::forward:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_X,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_Y,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_FORWARD_BETA};
    case ConvolutionPass::backward_data:
      return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DX,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_W,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_DY,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_CONV_DESC,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_ALPHA,
              CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_DATA_BETA};
    case ConvolutionPass::backward_filter:
      break;
  }
  return {CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_X,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DW,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_DY,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_CONV_DESC,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_ALPHA,
          CUDNN_ATTR_OPERATION_CONVOLUTION_BWD_FILTER_BETA};
}

GraphObject window_of(const ConvolutionTensors& tensors) {
  const std::vector<std::int64_t> dilations(tensors.pad.size(), 1);
  GraphObject window(CUDNN_BACKEND_CONVOLUTION_DESCRIPTOR);
  window.set(CUDNN_ATTR_CONVOLUTION_SPATIAL_DIMS, std::vector{static_cast<std::int64_t>(tensors.pad.size())})
      .set_one(CUDNN_ATTR_CONVOLUTION_COMP_TYPE, CUDNN_TYPE_DATA_TYPE, CUDNN_DATA_FLOAT)
      .set_one(CUDNN_ATTR_CONVOLUTION_CONV_MODE, CUDNN_TYPE_CONVOLUTION_MODE, CUDNN_CROSS_CORRELATION)
      .set(CUDNN_ATTR_CONVOLUTION_PRE_PADDINGS, tensors.pad)
      .set(CUDNN_ATTR_CONVOLUTION_POST_PADDINGS, tensors.pad)
      .set(CUDNN_ATTR_CONVOLUTION_DILATIONS, dilations)
      .set(CUDNN_ATTR_CONVOLUTION_FILTER_STRIDES, tensors.stride);
  return window.finalize("cudnnBackendFinalize of a convolution");
}

GraphObject operation_of(const ConvolutionTensors& tensors, ConvolutionPass pass) {
  const OperationNames names = names_of(pass);
  GraphObject operation(names.type);
  operation.set(names.x, std::vector{made(tensors.x)})
      .set(names.w, std::vector{made(tensors.w)})
      .set(names.y, std::vector{made(tensors.y)})
      .set(names.convolution, std::vector{window_of(tensors)})
      .set_one(names.alpha, CUDNN_TYPE_FLOAT, 1.0F)
      .set_one(names.beta, CUDNN_TYPE_FLOAT, 0.0F);
  return operation.finalize("cudnnBackendFinalize of a convolution's pass");
}

bool allowed(const GraphEngine& engine, GpuPrecision precision) {
  if (engine.has(CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS)) return false;
  return precision != GpuPrecision::f32 || !engine.has(CUDNN_NUMERICAL_NOTE_TENSOR_CORE);
}

/// Seconds of one run, after one that is not timed because it loads kernels.
double seconds_of(const Device& device, const GraphPlan& plan, const ConvolutionArrays& arrays) {
  run(plan, device, arrays);
  const auto runs = [&] {
    for (int i = 0; i < kTimedRuns; ++i) run(plan, device, arrays);
  };
  return seconds_on_stream(device.stream.get(), runs) / kTimedRuns;
}

/// The plan of an engine if it can run within the workspace.
std::shared_ptr<const GraphPlan> plan_within(const Device& device, const GraphEngine& engine) {
  auto plan = std::make_shared<const GraphPlan>(engine, PlanTarget{device.dnn.get()});
  if (plan->workspace() <= device.workspace.bytes) return plan;
  throw GpuError(fmt::format("a workspace of {} MiB", plan->workspace() >> 20));
}

}  // namespace

std::vector<GraphEngine> engines_for(const ConvolutionTensors& tensors, ConvolutionPass pass,
                                     GpuPrecision precision, const PlanTarget& target) {
  std::vector<GraphEngine> engines = engines_for({operation_of(tensors, pass)}, target);
  std::erase_if(engines, [precision](const GraphEngine& one) { return !allowed(one, precision); });
  return engines;
}

void run(const GraphPlan& plan, const Device& device, const ConvolutionArrays& arrays) {
  plan.run(device.dnn.get(), {{kX, arrays.x}, {kW, arrays.w}, {kY, arrays.y}}, device.workspace.data());
}

FastestPlan fastest_plan(Device& device, const ConvolutionTensors& tensors, ConvolutionPass pass,
                         const ConvolutionArrays& arrays) {
  using Clock = std::chrono::steady_clock;
  FastestPlan best;
  int plans = 0, failed = 0;
  std::string cause;
  try {
    device.raise_clocks();
    const auto begin = Clock::now();
    for (const GraphEngine& engine :
         engines_for(tensors, pass, device.options.precision, PlanTarget{device.dnn.get()})) {
      if (plans - failed == kMostPlans) break;
      if (std::chrono::duration<double>(Clock::now() - begin).count() > kMostSeconds) break;
      ++plans;
      try {
        auto plan = plan_within(device, engine);
        const double seconds = seconds_of(device, *plan, arrays);
        if (best.plan == nullptr || seconds < best.seconds) best = {std::move(plan), seconds, {}};
      } catch (const GpuError& error) {
        ++failed;
        cause = error.what();
        cudaGetLastError();  // the next launch would report it again
      }
    }
  } catch (const GpuError& error) {
    cause = error.what();
  }
  best.outcome =
      fmt::format("{} plans, of which {} cannot run{}{}", plans, failed, cause.empty() ? "" : ": ", cause);
  return best;
}

bool has_plan(const Device& device, const ConvolutionTensors& tensors, ConvolutionPass pass) {
  try {
    for (const GraphEngine& engine :
         engines_for(tensors, pass, device.options.precision, PlanTarget{device.dnn.get()})) {
      try {
        plan_within(device, engine);
        return true;
      } catch (const GpuError&) {  // another engine may run
      }
    }
  } catch (const GpuError&) {  // no engine takes the graph
  }
  return false;
}

}  // namespace stepcast::cudnn
