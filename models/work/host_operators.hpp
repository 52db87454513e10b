#pragma once

#include <vector>

#include "models/cost/cost.hpp"
#include "models/cost/kernel_choice.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// Operators of one layer that start kernels, by pass; views and allocations start none.
struct HostOperators {
  int forward = 0, backward = 0, update = 0;
};

/// The operators of each layer where a framework runs them one by one, as PyTorch does: the kernels that
/// layer_costs counts, and those that it leaves out because they move little.
///
/// - A bias, and each trained tensor: one operator more backward. It adds the gradient to an fp32 buffer
///   (Megatron-LM: param.main_grad.add_) or copies it into a bucket (PyTorch DDP).
/// - Attention: a copy that joins the heads, backward two more and one that joins the gradients of queries,
///   keys and values; scale and mask unless softmax has them, and casts if it is fp32; dropout. A flash
///   kernel needs the last join only.
/// - A fused update starts one kernel for a few hundred tensors, which is not counted (Apex,
///   multi_tensor_apply).
/// - GELU that is written out: 8 operators forward and 12 backward (tanh), 5 and 9 (erf).
/// - An LSTM or GRU is one call of the library.
///
/// Source: operators of a GPT block in PyTorch 1.13 (torch.profiler), compared in
/// docs/explanation/host-time.md.
/// @param costs  layer_costs of the model with the same kernels
std::vector<HostOperators> host_operators(const Model& model, const std::vector<LayerCost>& costs,
                                          const KernelChoice& choice);

}  // namespace stepcast
