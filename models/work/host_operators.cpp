#include "models/work/host_operators.hpp"

#include <algorithm>

#include "models/cost/pass_cost.hpp"
#include "models/network/layer.hpp"

namespace stepcast {
namespace {

void add_attention(const Layer& layer, const KernelChoice& choice, HostOperators& operators) {
  const KernelChoice::Attention kernels = attention_kernels(layer, choice);
  if (is_flash(kernels)) {
    operators.backward += 1;
    return;
  }
  const bool eager = kernels == KernelChoice::Attention::eager;
  const int separate = !eager ? 0 : choice.fp32_scores ? 4 : 2;  // scale and mask, casts
  const int dropout = layer.coefficient > 0 ? 1 : 0;
  operators.forward += 1 + separate + dropout;
  operators.backward += 3 + separate + dropout;
}

void add_gelu(const KernelChoice& choice, HostOperators& operators) {
  if (choice.gelu == KernelChoice::Gelu::fused) return;
  const bool tanh = choice.gelu == KernelChoice::Gelu::eager;
  operators.forward += (tanh ? 8 : 5) - 1;
  operators.backward += (tanh ? 12 : 9) - 1;
}

/// Kernels of their own where these layers are written out (models/cost/cost.cpp).
void add_written_out(const Layer& layer, HostOperators& operators) {
  if (layer.kind == LayerKind::rms_norm) {
    operators.forward += 6 - 1;
    operators.backward += 11 - 1;
  } else if (layer.kind == LayerKind::swiglu) {
    operators.forward += 2 - 1;
    operators.backward += 3 - 1;
  } else if (layer.kind == LayerKind::rotary_embedding && layer.inputs.size() == 1) {  // of queries and keys
    operators.forward += 2 * 5 - 1;
    operators.backward += 2 * 6 - 1;
  }
}

/// What Megatron-LM's training loop starts once a micro-batch beside the layers, which ends in its own loss:
/// the batch's broadcast, masks and positions (pretrain_gpt.py, get_batch), the tables' rows with dropout,
/// and the mean over tokens and replicas (loss_func); backward, the gradients of the tables.
void add_training_loop(const KernelChoice& choice, HostOperators& operators) {
  if (choice.cross_entropy != KernelChoice::CrossEntropy::vocab_parallel) return;
  operators.forward += 10 + 6 + 8;
  operators.backward += 10;
}

HostOperators operators_of(const Layer& layer, const LayerCost& cost, const KernelChoice& choice) {
  const int tensors = std::ranges::count(layer.parameters, true, &ParameterTensor::trainable);
  HostOperators operators{cost.forward.kernels, cost.backward_data.kernels + cost.backward_weights.kernels,
                          choice.update == KernelChoice::Update::fused ? 0 : cost.update.kernels};
  if (layer.kind == LayerKind::lstm || layer.kind == LayerKind::gru)
    operators.forward = operators.backward = 1;
  if (cost.backward_weights.bias > 0) operators.backward += 1;
  operators.backward += tensors;
  if (layer.kind == LayerKind::attention) add_attention(layer, choice, operators);
  if (layer.kind == LayerKind::gelu) add_gelu(choice, operators);
  if (choice.elementwise == KernelChoice::Elementwise::eager) add_written_out(layer, operators);
  if (layer.kind == LayerKind::softmax_cross_entropy) add_training_loop(choice, operators);
  return operators;
}

}  // namespace

std::vector<HostOperators> host_operators(const Model& model, const std::vector<LayerCost>& costs,
                                          const KernelChoice& choice) {
  std::vector<HostOperators> operators;
  for (std::size_t i = 0; i < costs.size(); ++i)
    operators.push_back(operators_of(model.layers[i], costs[i], choice));
  return operators;
}

}  // namespace stepcast
