#pragma once

#include <vector>

#include "models/cost/kernel_choice.hpp"
#include "models/cost/pass_cost.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// True if a layer computes in half precision under PyTorch's autocast, and casts an input of fp32 to it.
bool computes_in_half(LayerKind kind);

/// True if a layer computes in fp32 under autocast, and casts an input of half precision to it.
bool computes_in_single(LayerKind kind);

/// Bytes of an element of each layer's output under autocast. Products (convolution, dense, attention) return
/// half precision; layer norm, losses and a GELU that is written out (its power) fp32; the others the widest
/// of their inputs. Embeddings have fp32 rows. Source: aten/src/ATen/autocast_mode.cpp of pytorch/pytorch.
std::vector<double> autocast_widths(const Model& model, KernelChoice::Gelu gelu = KernelChoice::Gelu::fused);

/// Gives the passes the precisions that autocast chooses, and adds its casts: of fp32 inputs and weights to
/// half precision for products, and of their gradients back; of inputs of half precision to fp32 for norms
/// and losses, and of their error signals back. A cast of n elements moves 6 n bytes. A sum of two precisions
/// reads both as they are. Kernels are counted as profiles of PyTorch 2.11 show them
/// (docs/explanation/derived-traces.md).
/// @param costs  of the model's layers, by layer_costs in half precision
void add_autocast(const Model& model, const KernelChoice& choice, std::vector<LayerCost>& costs);

}  // namespace stepcast
