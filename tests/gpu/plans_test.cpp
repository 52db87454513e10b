#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "all_networks.hpp"
#include "gpu/capture/selection.hpp"
#include "kernels/cudnn/layers/fused_attention.hpp"
#include "kernels/cudnn/layers/windows.hpp"

// Plans of the real cuDNN for a GPU that is not here: its heuristics name engines, and plans are made, from a
// description of the GPU. This shows which graphs an H100 takes, not what it computes, nor how fast.
namespace stepcast::test {
namespace {

using namespace cudnn;

/// The attribute of a description's text, since cuDNN 9.8, by its number, so that older headers suffice.
constexpr auto kDescription = static_cast<cudnnBackendAttributeName_t>(2702);
constexpr auto kDescriptionType = static_cast<cudnnBackendDescriptorType_t>(38);

/// An H100 with 80 GB. Sources: NVIDIA H100 Tensor Core GPU Architecture (white paper, 2022) and CUDA C++
/// Programming Guide, table of compute capability 9.0.
GraphObject h100() {
  GraphObject description(kDescriptionType);
  description.set(kDescription, std::string(R"({"deviceName": "NVIDIA H100 80GB HBM3", "deviceVer": 900,
"driverVer": 13000, "cudaDeviceId": 0, "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1, "warpSize": 32,
"multiProcessorCount": 132, "smClockRateKHz": 1980000, "memClockRateKHz": 2619000, "l2CacheSize": 52428800,
"totalGlobalMem": 85017493504, "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64],
"regsPerBlock": 65536, "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024,
"maxThreadsPerSM": 2048, "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": 232448,
"reservedSharedMemoryPerBlock": 1024})"));
  return description.finalize("cudnnBackendFinalize of a description");
}

struct Way {
  GpuPrecision precision;
  Element element;
  Order order;
};

/// The tensors of a convolution layer whose padding is equal on both sides.
ConvolutionTensors tensors_of_layer(const Layer& layer, std::int64_t batch, const Way& way) {
  const auto batched = [batch](const Shape& sample) {
    Shape shape{batch};
    shape.insert(shape.end(), sample.begin(), sample.end());
    return as_image(shape);
  };
  return tensors_of(way.element, batched(layer.input), batched(layer.output), way.order,
                    {layer.parameters.front().shape, way.order == Order::channels_last,
                     layer.window.pad_before, layer.window.stride});
}

/// Names, for layers of equal geometry, what has been asked already.
std::string geometry_of(const ConvolutionTensors& one) {
  std::string text;
  for (const auto* list : {&one.x.sizes, &one.w.sizes, &one.pad, &one.stride})
    for (const std::int64_t value : *list) text += std::to_string(value) + " ";
  return text;
}

/// True if one of the engines can run within 1 GiB of workspace.
bool runs_on(const std::vector<GraphEngine>& engines, const PlanTarget& target) {
  return std::ranges::any_of(engines, [&](const GraphEngine& one) {
    try {
      return GraphPlan(one, target).workspace() <= std::size_t{1} << 30;
    } catch (const GpuError& error) {
      UNSCOPED_INFO(error.what());
      return false;
    }
  });
}

/// Descriptions of GPUs came with cuDNN 9.8.
bool takes_descriptions() {
  if (cudnnGetVersion() >= 90800) return true;
  SUCCEED("this cuDNN takes no descriptions of GPUs");
  return false;
}

/// Asks for plans of every pass of the convolutions of a network whose padding is equal on both sides, of
/// each geometry once. @param asked  geometries that have been asked already
void require_plans(const Model& model, std::int64_t batch, const Way& way, const PlanTarget& target,
                   std::set<std::string>& asked) {
  for (const Layer& layer : model.layers) {
    const bool plain =
        layer.kind == LayerKind::convolution && layer.window.pad_before == layer.window.pad_after;
    if (!plain || batch * std::max(elements(layer.input), elements(layer.output)) >= std::int64_t{1} << 31)
      continue;
    const ConvolutionTensors tensors = tensors_of_layer(layer, batch, way);
    if (!asked.insert(geometry_of(tensors)).second) continue;
    for (const ConvolutionPass pass :
         {ConvolutionPass::forward, ConvolutionPass::backward_data, ConvolutionPass::backward_filter}) {
      CAPTURE(model.name, layer.name, batch, to_string(way.precision), ordinal(pass));
      CHECK(runs_on(engines_for(tensors, pass, way.precision, target), target));
    }
  }
}

Way any_way() {
  return GENERATE(Way{GpuPrecision::f32, Element::f32, Order::row_major},
                  Way{GpuPrecision::tf32, Element::f32, Order::channels_last},
                  Way{GpuPrecision::f16, Element::f16, Order::channels_last},
                  Way{GpuPrecision::bf16, Element::bf16, Order::channels_last});
}

}  // namespace

TEST_CASE("cuDNN itself makes plans for an H100 for every pass of ResNet-50's convolutions",
          "[gpu][host-calls]") {
  if (!takes_descriptions()) return;
  const GraphObject gpu = h100();
  std::set<std::string> asked;
  require_plans(model_of("resnet50"), 64, any_way(), {.description = &gpu}, asked);
  CHECK(asked.size() >= 20);
}

TEST_CASE("cuDNN itself makes plans for an H100 for every pass of every network's convolutions",
          "[gpu][host-calls][long]") {
  if (!takes_descriptions()) return;
  const GraphObject gpu = h100();
  const Way way = any_way();
  std::set<std::string> asked;
  for (const std::string& name : network_names())
    require_plans(model_of(name), 16, way, {.description = &gpu}, asked);
  CHECK(asked.size() > 100);
}

/// Engines for attention compile their kernels, which needs the driver's library; without it none is named.
TEST_CASE("cuDNN itself accepts the graphs of fused attention", "[gpu][host-calls]") {
  if (!takes_descriptions()) return;
  const GraphObject gpu = h100();
  const PlanTarget target{.description = &gpu};
  const auto type = GENERATE(CUDNN_DATA_BFLOAT16, CUDNN_DATA_HALF);
  const bool causal = GENERATE(false, true);
  const AttentionSizes sizes{
      .batch = 64, .heads = 12, .tokens = 1024, .size = 64, .type = type, .causal = causal};
  CAPTURE(type, causal);
  CHECK_NOTHROW(engines_for(attention_forward(sizes), target));
  CHECK_NOTHROW(engines_for(attention_backward(sizes), target));
}

}  // namespace stepcast::test
