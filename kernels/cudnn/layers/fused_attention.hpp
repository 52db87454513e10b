#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kernels/cudnn/runtime/device.hpp"
#include "kernels/cudnn/runtime/graph_plan.hpp"

namespace stepcast::cudnn {

/// Sizes of an attention layer. Q, K and V lie side by side in rows of 3 heads x size elements, and the
/// result in rows of heads x size.
struct AttentionSizes {
  std::int64_t batch = 0, heads = 0, tokens = 0, size = 0;  ///< size of a head
  cudnnDataType_t type = CUDNN_DATA_BFLOAT16;
  bool causal = false;
};

/// Operations of the passes in cuDNN's graph API, in the order that its engines for attention know:
///   forward   y = softmax(Q K^T / sqrt(size)) V, and the logarithm of each row's sum of exponentials
///   backward  the gradients of Q, K and V, from y, its gradient and those logarithms
/// Source: NVIDIA, cuDNN developer guide, "Fused flash attention".
std::vector<GraphObject> attention_forward(const AttentionSizes& sizes);
std::vector<GraphObject> attention_backward(const AttentionSizes& sizes);

/// Attention that computes scores inside of a kernel and keeps none: with B samples, H heads, T tokens and
/// heads of d elements of e bytes, the forward pass moves 4 B T H d e bytes, and 4 B H T for the logarithms;
/// the backward pass at least 8 B T H d e.
class FusedAttention {
 public:
  /// Null if no engine takes these sizes within the workspace, for example in fp32. @param why  says so
  static std::unique_ptr<FusedAttention> make(Device& device, const AttentionSizes& sizes, std::string& why);

  /// The engines, such as "forward ENGINE_3, backward ENGINE_5".
  std::string name() const;
  void forward(const Device& device, const void* qkv, void* y, float* logarithms) const;
  struct Gradients {
    const void *qkv = nullptr, *y = nullptr, *dy = nullptr;
    const float* logarithms = nullptr;
    void* dqkv = nullptr;
  };
  void backward(const Device& device, const Gradients& arrays) const;

 private:
  FusedAttention(const AttentionSizes& sizes, GraphPlan forward, GraphPlan backward);

  const void* part(const void* qkv, std::int64_t which) const;
  std::vector<std::pair<std::int64_t, const void*>> inputs(const void* qkv) const;

  AttentionSizes sizes_;
  GraphPlan forward_, backward_;
  float scale_;
};

}  // namespace stepcast::cudnn
