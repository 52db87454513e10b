#pragma once

#include <vector>

#include "core/typed_numbers.hpp"
#include "models/cost/kernel_choice.hpp"
#include "models/cost/matrix_product.hpp"
#include "models/network/layer.hpp"
#include "models/network/model.hpp"

namespace stepcast {

inline constexpr double kFp32Bytes = 4;  ///< of an element
inline constexpr double kHalfBytes = 2;  ///< of an element in fp16 or bf16

/// Elements of a tensor of this shape.
inline double element_count(const Shape& shape) {
  return elements(shape);
}

/// Work and memory traffic of one pass of one layer.
///
/// Only products count as work: convolutions, locally connected, dense and recurrent layers, attention. A
/// multiply-add is two flop. Padding counts as work, biases do not. Element-wise layers, norms and pools cost
/// their traffic only.
struct PassCost {
  Flops flops;             ///< per sample
  double activations = 0;  ///< elements of activations and error signals read and written, per sample
  /// Elements of parameters, gradients and optimizer state read and written, per step.
  double parameters = 0;
  // Only the rule of KernelShares counts the following.
  /// The products of `flops`; none: one kernel whose share of the peak was measured as a whole.
  std::vector<MatrixProduct> products = {};
  /// Correction of `activations` for the chosen kernels, per sample: above zero for intermediate results of
  /// attention and second reads, below zero where fused kernels move less.
  double further_activations = 0;
  /// Further elements of parameters, per step: recurrent weights that every time step reads again, further
  /// passes of an optimizer of several kernels.
  double further_parameters = 0;
  /// Elements of error signals that a kernel of its own sums to the gradient of a bias, per sample.
  double bias = 0;
  /// Elements of a convolution's inputs and outputs that kernels of another layout copy, per sample.
  double other_layout = 0;
  /// Elements that the layer below has just written and this pass reads once, per sample. They may still be
  /// in the device's cache.
  double just_written = 0;
  // Only autocast sets the following (see add_autocast).
  double width = 0;             ///< bytes of an element of activations; 0: that of the precision
  double narrowed = 0;          ///< bytes that casts to half precision move, per sample
  double widened = 0;           ///< bytes that casts to fp32 and sums of two precisions move, per sample
  double narrowed_weights = 0;  ///< bytes that casts of fp32 weights move, per step
  double widened_weights = 0;   ///< bytes that casts of half-precision gradients of weights move, per step
  bool fp8 = false;             ///< the products run in fp8, after casts (see add_fp8)
  bool weights = false;         ///< the product is the gradient of weights
  int kernels = 0;              ///< kernels launched one after another; 0: the layer has no such pass

  /// Memory traffic of the pass. @param element  size of one element
  Bytes bytes(std::int64_t batch, Bytes element) const;
};

/// Costs of all passes of one layer.
///
/// If a library computes both gradients in one call (norms, recurrent layers), that call is `backward_data`,
/// or `backward_weights` if no layer below has parameters. `update` counts stochastic gradient descent with
/// momentum, in one fused kernel for each tensor; further elements that the chosen optimizer moves are in
/// `further_parameters`.
struct LayerCost {
  PassCost forward, backward_data, backward_weights, update;
};

/// Number of trained parameters of a layer.
double trainable(const Layer& layer);

/// Cost of the optimizer's step. Momentum in one kernel a tensor: weight, gradient and velocity in, weight
/// and velocity out.
PassCost update_cost(const Layer& layer, const KernelChoice& choice);

/// Elements of all inputs of one sample.
double input_count(const Layer& layer);

/// Elements of one sample that the backward pass needs besides inputs and outputs: gates of recurrent layers
/// (LSTM: 4 gates and the cell; GRU: 3 gates and the gated state), scores of attention, rows of experts, the
/// output of a scan.
double internal_elements(const Layer& layer);

/// The kernels of an attention: those chosen, or written-out ones, if trained biases are added to its scores,
/// as the transformers library does.
KernelChoice::Attention attention_kernels(const Layer& attention, const KernelChoice& choice);

/// Arrays of the parameters' size, with 4 bytes per element, that the chosen optimizer's step reads and
/// writes. In half precision it also writes the half-precision copy of the weights, unless autocast makes
/// that copy.
double update_arrays(const KernelChoice& choice);

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

/// Lets the products of dense layers in blocks, and of experts, run in fp8: not those of other layers, which
/// torchtitan's filter_fqns ("output") and Megatron-Core's output layer leave in bf16. Of each tensor the
/// greatest magnitude is found (2 B an element), then it is cast to one byte (3 B); the backward pass casts
/// input and weights again, transposed, and error signals in both layouts. With fused elementwise kernels,
/// the kernel that writes inputs and error signals finds their greatest magnitude, and one kernel casts them
/// to both layouts (4 B). Sources: pytorch/ao, torchao/float8/float8_linear.py and float8_scaling_utils.py
/// (dynamic scales of tensors), torchao/testing/training/roofline_utils.py (bytes, tensorwise, with and
/// without fusion); the products of torch._scaled_mm take rows times columns.
/// @param costs  of the model's layers, by layer_costs in half precision
void add_fp8(const Model& model, const KernelChoice& choice, std::vector<LayerCost>& costs);

/// Elements of queries and keys of one sample that a rotary embedding rotates.
double rotated_elements(const Layer& layer);

/// Adds what the chosen kernels compute in another precision or division than the layers: add_autocast;
/// add_fp8; operations that are written out; scores in fp32; the passes of vocab_parallel and fused cross
/// entropy over the logits; sums of gradients in fp32; a product for each expert.
/// @param costs  of the model's layers, by layer_costs
void add_precisions(const Model& model, const KernelChoice& choice, std::vector<LayerCost>& costs);

}  // namespace stepcast
