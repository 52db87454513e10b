#include "models/cost/pass_cost.hpp"

#include <algorithm>

namespace stepcast {

Bytes PassCost::bytes(std::int64_t batch, Bytes element) const {
  return (batch * activations + parameters) * element;
}

double trainable(const Layer& layer) {
  double sum = 0;
  for (const ParameterTensor& tensor : layer.parameters)
    sum += tensor.trainable ? element_count(tensor.shape) : 0;
  return sum;
}

namespace {

int trainable_tensors(const Layer& layer) {
  int sum = 0;
  for (const ParameterTensor& tensor : layer.parameters) sum += tensor.trainable ? 1 : 0;
  return sum;
}

/// Passes over the parameters of an optimizer's step, where each operation is a kernel or all are one.
/// PyTorch's operators, without weight decay: sgd add_; momentum mul_, add_, add_; adam lerp_, mul_,
/// addcmul_, sqrt, div_, add_, addcdiv_. AdamW has weight decay, a further mul_ of the weights.
double fp32_passes(const KernelChoice& choice) {
  const bool fused = choice.update == KernelChoice::Update::fused;
  if (choice.optimizer == KernelChoice::UpdateRule::sgd) return 3;
  if (choice.optimizer == KernelChoice::UpdateRule::momentum) return fused ? 5 : 8;
  if (fused) return 7;
  return choice.optimizer == KernelChoice::UpdateRule::adamw ? 20 : 18;
}

/// Kernels of each tensor's update.
int update_kernels(const KernelChoice& choice) {
  if (choice.update != KernelChoice::Update::for_loop) return 1;
  if (choice.optimizer == KernelChoice::UpdateRule::sgd) return 1;
  if (choice.optimizer == KernelChoice::UpdateRule::momentum) return 3;
  return choice.optimizer == KernelChoice::UpdateRule::adamw ? 8 : 7;
}

}  // namespace

PassCost update_cost(const Layer& layer, const KernelChoice& choice) {
  const double count = trainable(layer);
  if (!(count > 0)) return {};
  PassCost cost{
      .flops = {}, .parameters = 5 * count, .kernels = trainable_tensors(layer) * update_kernels(choice)};
  cost.further_parameters = (update_arrays(choice) - 5) * count;
  return cost;
}

double update_arrays(const KernelChoice& choice) {
  return fp32_passes(choice) + (choice.half() && !choice.autocast ? 0.5 : 0);
}

double input_count(const Layer& layer) {
  if (layer.kind == LayerKind::concatenate) return element_count(layer.output);
  const bool copies = layer.kind == LayerKind::rotary_embedding && layer.inputs.size() > 1;
  if (copies)  // only its output has the shared part of the keys for each head
    return element_count(layer.output) -
           (layer.heads - 1) * element_count({layer.input.front(), layer.shared_key});
  if (layer.kind != LayerKind::attention || layer.inputs.size() == 1)
    return layer.inputs.size() * element_count(layer.input);
  const std::int64_t kv_heads = layer.kv_heads > 0 ? layer.kv_heads : layer.heads;
  const std::int64_t key = layer.input.back() / layer.heads;
  const std::int64_t value = layer.value_width > 0 ? layer.value_width : key;
  return element_count(layer.input) + element_count({layer.keys, (key + value) * kv_heads});
}

double internal_elements(const Layer& layer) {
  const double time = layer.input.empty() ? 0 : layer.input.front();
  const double cells = time * layer.hidden * (layer.bidirectional ? 2 : 1);
  if (layer.kind == LayerKind::lstm) return 5 * cells;
  if (layer.kind == LayerKind::gru) return 4 * cells;
  if (layer.kind == LayerKind::attention) return layer.heads * time * attended_tokens(layer);
  if (layer.kind == LayerKind::state_space) return element_count(layer.output);  // before gate and norm
  if (layer.kind == LayerKind::experts)
    return expert_rows(layer) *
           (3 * layer.hidden + 2 * layer.input.back());  // gate and hidden units, their
                                                         // product, input and output rows
  if (layer.kind == LayerKind::softmax_cross_entropy) return element_count(layer.input);
  return 0;
}

bool computes_in_half(LayerKind kind) {
  switch (kind) {
    case LayerKind::convolution:
    case LayerKind::locally_connected:
    case LayerKind::dense:
    case LayerKind::lstm:
    case LayerKind::gru:
    case LayerKind::attention:
    case LayerKind::state_space:
    case LayerKind::experts:
      return true;
    default:
      return false;
  }
}

bool computes_in_single(LayerKind kind) {
  return kind == LayerKind::layer_norm || kind == LayerKind::rms_norm || is_loss(kind);
}

KernelChoice::Attention attention_kernels(const Layer& attention, const KernelChoice& choice) {
  return attention.position_bias >= 0 ? KernelChoice::Attention::eager : choice.attention;
}

namespace {

/// True if the output is fp32 although nothing was cast: it is made of parameters, or multiplied with them.
bool made_of_parameters(LayerKind kind) {
  return kind == LayerKind::embedding || kind == LayerKind::position_embedding ||
         kind == LayerKind::class_token || kind == LayerKind::scale;
}

constexpr double kCast = kHalfBytes + kFp32Bytes;  // bytes that the cast of an element moves

/// The pass that computes the derivative by the inputs.
PassCost& data_pass(LayerCost& cost) {
  return cost.backward_data.kernels > 0 ? cost.backward_data : cost.backward_weights;
}

/// A cast is one kernel more. Each kernel of a recurrent layer is a time step.
void add_kernels(const Layer& layer, int count, PassCost& pass) {
  if (layer.kind != LayerKind::lstm && layer.kind != LayerKind::gru) pass.kernels += count;
}

/// Autocast caches the casts of weights for one step, so each is cast once, and its gradient once.
void cast_weights(const Layer& layer, LayerCost& cost) {
  const double moved = kCast * cost.forward.parameters;
  if (!(moved > 0)) return;
  const int arrays = layer.parameters.size() + (layer.weight_of >= 0 ? 1 : 0);
  cost.forward.narrowed_weights = moved;
  add_kernels(layer, arrays, cost.forward);
  PassCost& gradients = cost.backward_weights.kernels > 0 ? cost.backward_weights : cost.backward_data;
  gradients.widened_weights = moved;
  add_kernels(layer, arrays, gradients);
}

void cast_inputs(const Layer& layer, const std::vector<double>& widths, LayerCost& cost) {
  for (const double width : widths) {
    const double moved = kCast * element_count(layer.input);
    if (computes_in_half(layer.kind) && width == kFp32Bytes) {
      cost.forward.narrowed += moved;
      add_kernels(layer, 1, cost.forward);
      if (cost.backward_data.kernels == 0) continue;
      cost.backward_data.widened += moved;
      add_kernels(layer, 1, cost.backward_data);
    } else if (computes_in_single(layer.kind) && width == kHalfBytes) {
      cost.forward.widened += moved;
      add_kernels(layer, 1, cost.forward);
      data_pass(cost).narrowed += moved;
      add_kernels(layer, 1, data_pass(cost));
    }
  }
}

/// An addition of two precisions is one kernel; the error signals of inputs of half precision are cast.
void add_two_precisions(const Layer& layer, const std::vector<double>& widths, LayerCost& cost) {
  const double narrow = std::count(widths.begin(), widths.end(), kHalfBytes);
  if (narrow == 0 || narrow == widths.size()) return;
  double bytes = kFp32Bytes;
  for (const double width : widths) bytes += width;
  cost.forward.widened = bytes * element_count(layer.output);
  cost.forward.activations = cost.forward.just_written = 0;
  cost.backward_data.narrowed = narrow * kCast * element_count(layer.output);
  add_kernels(layer, static_cast<int>(narrow), cost.backward_data);
}

/// The logarithm of softmax stays in the precision of its input, is cast for the loss, and reads a row twice.
/// Its backward pass fills an fp32 error signal with zeros, and reads it and the output, the signal twice.
void widen_softmax_loss(const Layer& layer, LayerCost& cost) {
  const double inputs = element_count(layer.input);
  cost.forward.width = data_pass(cost).width = kHalfBytes;
  cost.forward.further_activations += inputs;
  data_pass(cost).further_activations += 2 * inputs;
  data_pass(cost).narrowed += kFp32Bytes * inputs;
}

/// Written-out attention computes its softmax and dropout in fp32 between two casts: 32 B an element of the
/// scores forward in place of 8 passes of 2 B, and 40 B backward in place of 11. Dropout moves 4 B more.
void widen_scores(const Layer& layer, LayerCost& cost) {
  const double scores = internal_elements(layer);
  const double dropout = layer.coefficient > 0 ? 2 : 0;  // elements of 2 B
  cost.forward.further_activations += (8 + dropout) * scores;
  if (cost.backward_data.kernels > 0) cost.backward_data.further_activations += (9 + dropout) * scores;
}

/// Autocast computes the power of a GELU that is written out in fp32, so all that reads it is fp32, too.
/// Forward: a product in half precision (4 B an element), power, two products, tanh and a sum in fp32 (8 B
/// each); the cast for the power (6 B), a sum and a product of two precisions (10 B each). Backward: 102 B,
/// and a product of two precisions. Counted in a profile of GPT-2 with PyTorch 2.11.
void widen_gelu(const Layer& layer, LayerCost& cost) {
  const double out = element_count(layer.output);
  const auto move = [out](double bytes, double two_precisions, PassCost& pass) {
    pass.further_activations = bytes / kFp32Bytes * out - pass.activations;
    pass.widened = two_precisions * out;
  };
  move(4 + 5 * 8, 6 + 2 * 10, cost.forward);
  if (cost.backward_data.kernels > 0) move(102, 10, cost.backward_data);
}

/// Sets the bytes that each logit moves. vocab_parallel, forward: cast to fp32, maximum, difference,
/// exponential, sum, quotient; backward: product with the gradient of the loss, cast back. Small operations
/// on one element a token are kernels, too. Source: Megatron-LM, megatron/mpu/cross_entropy.py. fused: the
/// logits are read twice, and the derivative is written over them; backward, it is multiplied. Source:
/// Transformer Engine, common/triton/cross_entropy.py.
void choose_cross_entropy(const Layer& layer, const KernelChoice& choice, LayerCost& cost) {
  using Kind = KernelChoice::CrossEntropy;
  if (choice.cross_entropy == Kind::log_softmax) return;
  const double width = choice.half() ? kHalfBytes : kFp32Bytes, cast = choice.half() ? kCast : 0;
  const bool fused = choice.cross_entropy == Kind::fused;
  const auto set = [&](double bytes, int kernels, PassCost& pass) {
    pass.further_activations = bytes / width * element_count(layer.input) - pass.activations;
    pass.kernels = kernels;
  };
  set(fused ? 3 * width : cast + 4 + 8 + 8 + 4 + 8, fused ? 2 : 20, cost.forward);
  set(fused ? 2 * width : 8 + cast, fused ? 1 : 8, data_pass(cost));
}

/// Each expert of the device has a product of its own, with its share of the rows; the router has one.
void divide_among_experts(const Layer& layer, PassCost& pass) {
  const double experts = layer.experts;
  for (std::size_t i = 0; i + 1 < pass.products.size(); ++i) {
    MatrixProduct& product = pass.products[i];
    (product.samples == MatrixProduct::Samples::inner ? product.inner : product.rows) /= experts;
    product.together = experts;
  }
}

/// What a kernel for each operation moves beside one fused kernel, in elements of the layer's precision. In
/// half precision RMS norm computes in fp32: cast, square, mean, product, cast, scale (Hugging Face's
/// LlamaRMSNorm, PyTorch's composite rms_norm) move 36 bytes an element forward and 76 backward, where a
/// fused kernel and its sum move 4 and 10. SwiGLU is two kernels forward and three backward; a rotation is a
/// negation, a copy, two products and a sum.
void add_written_out(const Layer& layer, const KernelChoice& choice, LayerCost& cost) {
  const double out = element_count(layer.output);
  const bool widens = choice.half() && !choice.autocast;
  double forward = 0, backward = 0;
  if (layer.kind == LayerKind::rms_norm) {
    forward = (widens ? 18 - 2 : 7 - 2) * out;
    backward = (widens ? 38 - 5 : 19 - 5) * out;
  } else if (layer.kind == LayerKind::swiglu) {
    forward = 2 * out;
    backward = 4 * out;
  } else if (layer.kind == LayerKind::rotary_embedding && layer.inputs.size() == 1) {
    forward = backward = 8 * rotated_elements(layer);
  }
  cost.forward.further_activations += forward;
  (cost.backward_data.kernels > 0 ? cost.backward_data : cost.backward_weights).further_activations +=
      backward;
}

}  // namespace

/// Elements of queries and keys of one sample.
double rotated_elements(const Layer& layer) {
  if (layer.shared_key > 0) return element_count({layer.input.front(), layer.shared_key}) * (layer.heads + 1);
  const double kv_heads = layer.kv_heads > 0 ? layer.kv_heads : layer.heads;
  if (layer.value_width > 0)
    return element_count(layer.input) - element_count({layer.input.front(), layer.value_width}) * kv_heads;
  const double all = layer.heads + 2 * kv_heads;
  return element_count(layer.input) * (all - kv_heads) / all;
}

void add_precisions(const Model& model, const KernelChoice& choice, std::vector<LayerCost>& costs) {
  if (choice.autocast) add_autocast(model, choice, costs);
  if (choice.precision == KernelChoice::Precision::fp8) add_fp8(model, choice, costs);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const Layer& layer = model.layers[i];
    if (choice.elementwise == KernelChoice::Elementwise::eager) add_written_out(layer, choice, costs[i]);
    if (layer.kind == LayerKind::softmax_cross_entropy) choose_cross_entropy(layer, choice, costs[i]);
    if (layer.kind == LayerKind::experts) {
      for (PassCost* pass : {&costs[i].forward, &costs[i].backward_data, &costs[i].backward_weights})
        divide_among_experts(layer, *pass);
    }
    // Transformer Engine's products add gradients of half precision to fp32 ones: 8 B in place of 2.
    if (choice.adds_to_sums() && costs[i].backward_weights.weights)
      costs[i].backward_weights.further_parameters += 3 * costs[i].backward_weights.parameters;
    if (layer.kind == LayerKind::attention && choice.fp32_scores && !choice.autocast)
      widen_scores(layer, costs[i]);
  }
}

namespace {

/// True for a layer inside one of the blocks; in a network without blocks for each that no loss reads.
std::vector<bool> in_blocks(const Model& model) {
  std::vector<bool> inside(model.layers.size(), model.blocks.empty());
  for (const LayerBlock& block : model.blocks)
    std::fill(inside.begin() + block.first, inside.begin() + block.last, true);
  for (const Layer& layer : model.layers) {
    if (!is_loss(layer.kind)) continue;
    for (const int input : layer.inputs)
      if (input >= 0) inside[input] = false;
  }
  return inside;
}

// Bytes that an element moves: reads that find the greatest magnitude, a cast, and one to both layouts.
constexpr double kScale = kHalfBytes, kFp8Cast = kHalfBytes + 1, kFp8Casts = kHalfBytes + 2;

}  // namespace

void add_fp8(const Model& model, const KernelChoice& choice, std::vector<LayerCost>& costs) {
  const std::vector<bool> inside = in_blocks(model);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const Layer& layer = model.layers[i];
    if (!inside[i] || (layer.kind != LayerKind::dense && layer.kind != LayerKind::experts)) continue;
    const double in = element_count(layer.input), out = element_count(layer.output),
                 weights = trainable(layer);
    const auto cast = [](double samples, double parameters, int kernels, PassCost& pass) {
      if (pass.kernels == 0) return;
      pass.fp8 = true;
      pass.narrowed += samples;
      pass.narrowed_weights += parameters;
      pass.kernels += kernels;
    };
    const bool fused = choice.elementwise == KernelChoice::Elementwise::fused;
    const double first = fused ? kFp8Casts : kScale + kFp8Cast;
    cast(first * in, (kScale + kFp8Cast) * weights, 4, costs[i].forward);
    cast(first * out, kFp8Cast * weights, 3, costs[i].backward_data);
    cast(fused ? 0 : kFp8Cast * (in + out), 0, fused ? 0 : 2, costs[i].backward_weights);
  }
}

std::vector<double> autocast_widths(const Model& model, KernelChoice::Gelu gelu) {
  std::vector<double> widths;
  for (const Layer& layer : model.layers) {
    double widest = 0;  // of the inputs; autocast leaves the input of the network in fp32
    for (const int input : layer.inputs) widest = std::max(widest, input < 0 ? kFp32Bytes : widths[input]);
    const bool half = computes_in_half(layer.kind) || layer.kind == LayerKind::measured;
    const bool power = layer.kind == LayerKind::gelu && gelu == KernelChoice::Gelu::eager;
    const bool single = computes_in_single(layer.kind) || made_of_parameters(layer.kind) || power;
    widths.push_back(half ? kHalfBytes : single ? kFp32Bytes : widest);
  }
  return widths;
}

void add_autocast(const Model& model, const KernelChoice& choice, std::vector<LayerCost>& costs) {
  const std::vector<double> widths = autocast_widths(model, choice.gelu);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const Layer& layer = model.layers[i];
    LayerCost& cost = costs[i];
    std::vector<double> inputs;
    for (const int input : layer.inputs) inputs.push_back(input < 0 ? kFp32Bytes : widths[input]);
    for (PassCost* pass : {&cost.forward, &cost.backward_data, &cost.backward_weights})
      pass->width = widths[i];
    cast_inputs(layer, inputs, cost);
    if (computes_in_half(layer.kind)) cast_weights(layer, cost);
    if (layer.kind == LayerKind::add) add_two_precisions(layer, inputs, cost);
    if (layer.kind == LayerKind::softmax_cross_entropy) widen_softmax_loss(layer, cost);
    if (layer.kind == LayerKind::gelu && choice.gelu == KernelChoice::Gelu::eager) widen_gelu(layer, cost);
    if (layer.kind == LayerKind::attention &&
        attention_kernels(layer, choice) == KernelChoice::Attention::eager)
      widen_scores(layer, cost);
  }
}

}  // namespace stepcast
