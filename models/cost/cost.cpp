#include "models/cost/cost.hpp"

#include <algorithm>

#include "models/cost/pass_cost.hpp"
#include "models/network/layer.hpp"
#include "models/network/model.hpp"

namespace stepcast {
namespace {

/// Properties of a layer's place in the network that decide its cost.
struct Site {
  double inputs = 0;  ///< elements of all inputs
  bool data = false;  ///< whether a backward-data pass is needed
  KernelChoice choice = {};
};

PassCost pass(double flops, double activations, double parameters, int kernels = 1) {
  return {.flops = {flops}, .activations = activations, .parameters = parameters, .kernels = kernels};
}

PassCost pass(const std::vector<MatrixProduct>& products, double activations, double parameters,
              int kernels = 1) {
  PassCost cost = pass(0, activations, parameters, kernels);
  for (const MatrixProduct& product : products) cost.flops += product.flops();
  cost.products = products;
  return cost;
}

bool has_bias(const Layer& layer) {
  return std::ranges::any_of(layer.parameters,
                             [](const ParameterTensor& tensor) { return tensor.name == "bias"; });
}

/// Size of the dimension of features: the last one, but for convolutions the first.
double feature_count(const Layer& layer, const Shape& shape) {
  return layer.kind == LayerKind::dense ? shape.back() : shape.front();
}

/// Rows are the positions of the output, columns its features.
MatrixProduct forward_product(const Layer& layer) {
  const double columns = feature_count(layer, layer.output), rows = element_count(layer.output) / columns;
  if (layer.kind == LayerKind::dense) return {rows, columns, feature_count(layer, layer.input)};
  const std::int64_t channels = layer.input.front() / layer.groups;
  return {rows, columns, channels * element_count(layer.window.kernel)};
}

/// Rows are the positions of the input, columns its features. The work is that of the forward pass.
MatrixProduct gradient_of_input(const Layer& layer, const MatrixProduct& forward) {
  const double columns = feature_count(layer, layer.input), rows = element_count(layer.input) / columns;
  return {rows, columns, forward.rows * forward.columns * forward.inner / (rows * columns)};
}

MatrixProduct gradient_of_weights(const MatrixProduct& forward) {
  return {forward.inner, forward.columns, forward.rows, MatrixProduct::Samples::inner};
}

/// Convolution, locally connected, dense: one product a pass.
LayerCost product_cost(const Layer& layer, const Site& site, const MatrixProduct& product) {
  const double traffic = site.inputs + element_count(layer.output);
  // A tied weight belongs to another layer, and is read and written here as well.
  const bool tied = layer.weight_of >= 0;
  const double own = trainable(layer);
  const double weights = own + (tied ? element_count({layer.output.back(), layer.input.back()}) : 0);
  LayerCost cost;
  cost.forward = pass({product}, traffic, weights);
  if (site.data) cost.backward_data = pass({gradient_of_input(layer, product)}, traffic, weights);
  cost.backward_weights = pass({gradient_of_weights(product)}, traffic, weights);
  cost.backward_weights.weights = true;
  if (has_bias(layer)) cost.backward_weights.bias = element_count(layer.output);
  if (layer.kind == LayerKind::convolution) {
    // Only inputs count in the forward pass, because most kernels write the network's layout themselves: in
    // the A100 profile, 36 of 180 copies are of outputs.
    cost.forward.other_layout = site.inputs;
    cost.backward_weights.other_layout = traffic;
    if (site.data) cost.backward_data.other_layout = traffic;
  }
  return cost;
}

/// Cost of a layer without products: one kernel for each pass, which reads and writes `forward` or `backward`
/// elements.
LayerCost streaming_cost(double forward, double backward, const Site& site) {
  LayerCost cost;
  cost.forward = pass(0, forward, 0);
  if (site.data) cost.backward_data = pass(0, backward, 0);
  return cost;
}

/// Batch norm reads its input twice (statistics, then normalisation), layer and RMS norm once. One call
/// computes both gradients.
LayerCost norm_cost(const Layer& layer, const Site& site) {
  const double out = element_count(layer.output);
  const bool batch = layer.kind == LayerKind::batch_norm;
  LayerCost cost;
  cost.forward = pass(0, (batch ? 3 : 2) * out, trainable(layer));
  (site.data ? cost.backward_data : cost.backward_weights) = pass(0, (batch ? 5 : 3) * out, trainable(layer));
  // Layer norm sums the gradients of scale and shift in a kernel of its own, which reads both inputs again.
  (site.data ? cost.backward_data : cost.backward_weights).further_activations =
      batch || layer.parameters.empty() ? 0 : 2 * out;
  return cost;
}

/// One product over all time steps for the inputs, then one small product for each time step, which depends
/// on the step before.
LayerCost recurrent_cost(const Layer& layer, const Site& site) {
  const double time = layer.input.front(), hidden = layer.hidden;
  const double features = layer.input.back();
  const double gate_cells = (layer.bidirectional ? 2 : 1) * (layer.kind == LayerKind::lstm ? 4 : 3) * hidden;
  const MatrixProduct input_part{time, gate_cells, features};
  const MatrixProduct hidden_part{.columns = gate_cells, .inner = hidden, .in_turn = time};
  std::vector<MatrixProduct> backward{{.columns = hidden, .inner = gate_cells, .in_turn = time},
                                      {hidden, gate_cells, time, MatrixProduct::Samples::inner},
                                      {features, gate_cells, time, MatrixProduct::Samples::inner}};
  if (site.data) backward.push_back({time, features, gate_cells});
  const double traffic = site.inputs + element_count(layer.output) + internal_elements(layer);
  const int steps = layer.input.front() + 1;
  LayerCost cost;
  cost.forward = pass({input_part, hidden_part}, traffic, trainable(layer), steps);
  PassCost both = pass(backward, 2 * traffic, 2 * trainable(layer), steps);
  both.further_parameters = cost.forward.further_parameters = time * gate_cells * hidden;
  (site.data ? cost.backward_data : cost.backward_weights) = both;
  return cost;
}

/// Passes over the scores of all heads.
struct ScorePasses {
  double forward = 0, backward = 0;
};

/// Eager: product, scale, mask, softmax, product are 8 passes, and their backward passes 11. A fused softmax
/// reads only the half of the scores that a causal mask leaves: 1 pass of the first product, `read` + 1 of
/// the softmax, 1 of the second; backward 2 of the second product, 2 x `read` + 1 of the softmax, 2 of the
/// first.
/// Dropout is a kernel of its own, which reads and writes the scores, and a mask of 1 byte an element.
ScorePasses score_passes(const Layer& layer, const KernelChoice& choice) {
  const double read = layer.causal ? 0.5 : 1;
  const double mask = 1 / (choice.half() ? kHalfBytes : kFp32Bytes);
  const double dropout = layer.coefficient > 0 ? 2 + mask : 0;
  const KernelChoice::Attention kernels = attention_kernels(layer, choice);
  if (is_flash(kernels)) return {};
  if (kernels == KernelChoice::Attention::fused_softmax) return {3 + read + dropout, 5 + 2 * read + dropout};
  return {8 + dropout, 11 + dropout};
}

/// Scores and weighted sum take 2 time keys width flop each, of the widths of keys and of values; the
/// backward pass has two such products for each. A causal mask saves no work, except in a flash kernel, which
/// computes the scores a second time in its backward pass.
LayerCost attention_cost(const Layer& layer, const Site& site) {
  const double time = layer.input.front(), heads = layer.heads;
  const double width = query_features(layer) / heads, value_width = layer.output.back() / heads;
  const double keys = attended_tokens(layer), windows = layer.inputs.size() > 1 ? 1 : time / keys;
  // Queries x keys, and weights x values; backward the gradients of weights, values, keys and queries.
  const auto each = [&](double columns, double inner) {
    return MatrixProduct{time / windows, columns, inner, MatrixProduct::Samples::products, heads * windows};
  };
  const MatrixProduct scored = each(keys, width), summed = each(value_width, keys),
                      of_weights = each(keys, value_width), of_keys = each(width, keys);
  const double scores = internal_elements(layer);
  const double traffic = site.inputs + element_count(layer.output) + 2 * scores;
  const bool flash = is_flash(attention_kernels(layer, site.choice));
  const double pairs = (layer.causal ? 0.5 : 1) * 2 * time * keys;
  const double scoring = pairs * query_features(layer), summing = pairs * layer.output.back();
  const ScorePasses passes = score_passes(layer, site.choice);
  LayerCost cost;
  cost.forward = flash ? pass(scoring + summing, traffic, 0) : pass({scored, summed}, traffic, 0, 3);
  cost.forward.further_activations = (passes.forward - 2) * scores;
  if (!site.data) return cost;
  cost.backward_data = flash ? pass(3 * scoring + 2 * summing, 2 * traffic, 0)
                             : pass({of_weights, summed, of_keys, of_keys}, 2 * traffic, 0, 5);
  cost.backward_data.further_activations = (passes.backward - 4) * scores;
  if (layer.position_bias < 0) return cost;
  // The gradient of the biases sums that of the scores over the samples.
  cost.backward_data.further_activations += scores;
  if (trainable(layer) > 0)
    cost.backward_weights = pass(0, 0, trainable(layer) + heads * time / windows * keys);
  return cost;
}

/// The products of chunks: what reads x what writes, their scores x values, what writes x values (the states
/// of a chunk), and what reads x states. The backward pass has two such products for each, and computes the
/// first and the third again. States are fp32.
/// Source: T. Dao, A. Gu, "Transformers are SSMs", arXiv:2405.21060, section 6; ssd_combined.py of
/// state-spaces/mamba.
LayerCost state_space_cost(const Layer& layer, const Site& site) {
  const double time = layer.input.front(), chunk = layer.keys;
  const double heads = layer.heads, states = layer.hidden;
  const double groups = layer.groups, chunks = time / chunk;
  const double inner = layer.output.back(), width = inner / heads;
  const auto each = MatrixProduct::Samples::products;
  const MatrixProduct scored{chunk, chunk, states, each, groups * chunks},
      summed{chunk, width, chunk, each, heads * chunks}, written{width, states, chunk, each, heads * chunks},
      read{chunk, width, states, each, heads * chunks};
  const double convolved = time * (inner + 2 * groups * states);
  const double in_passing = groups * time * chunk + 2 * heads * chunks * width * states;
  const double traffic = site.inputs + 2 * convolved + 2 * in_passing + element_count(layer.output);
  LayerCost cost;
  // Convolution, sums of steps, states, their passing on, scores, scan, gate with norm.
  cost.forward = pass({scored, summed, written, read}, traffic, trainable(layer), 7);
  const std::vector<MatrixProduct> backward{scored,  scored,  scored,  summed, summed,
                                            written, written, written, read,   read};
  (site.data ? cost.backward_data : cost.backward_weights) =
      pass(backward, 2 * traffic, 2 * trainable(layer), 12);
  return cost;
}

/// Backward one kernel for the input, and a product and a sum for the factors.
LayerCost scale_cost(const Layer& layer, double out, const Site& site) {
  LayerCost cost = streaming_cost(2 * out, 2 * out, site);
  cost.backward_weights = pass(0, 4 * out, trainable(layer), 2);
  return cost;
}

/// One kernel each way, or the operators of `0.5 x (1 + tanh(c (x + 0.044715 x^3)))`: 18 and 28 passes; or of
/// `0.5 x (1 + erf(x / sqrt 2))`: 11 and 24 passes. Both were counted with PyTorch's profiler
/// (docs/explanation/derived-traces.md).
LayerCost gelu_cost(double out, const Site& site) {
  LayerCost cost = streaming_cost(2 * out, 3 * out, site);
  if (site.choice.gelu == KernelChoice::Gelu::fused) return cost;
  const bool erf = site.choice.gelu == KernelChoice::Gelu::eager_erf;
  cost.forward.further_activations = ((erf ? 11 : 18) - 2) * out;
  if (site.data) cost.backward_data.further_activations = ((erf ? 24 : 28) - 3) * out;
  return cost;
}

/// PyTorch scatters the gradients of overlapping windows: as much traffic as seven passes over the input, in
/// the profiles of models/measured/layers.csv.
LayerCost max_pool_cost(double out, const Site& site) {
  LayerCost cost = streaming_cost(site.inputs + out, site.inputs + 2 * out, site);
  cost.forward.further_activations = 2 * out;  // positions of 8 bytes
  if (site.data) cost.backward_data.further_activations = std::max(0.0, 6 * site.inputs - 2 * out);
  return cost;
}

/// Router, choice, gathering, gate and hidden units, SwiGLU, output, sum: one kernel each.
LayerCost experts_cost(const Layer& layer, const Site& site) {
  const double features = layer.input.back();
  const double rows = expert_rows(layer), hidden = layer.hidden;
  const double tokens = layer.input.front(), outputs = layer.experts;
  const std::vector<MatrixProduct> forward{
      {rows, 2 * hidden, features}, {rows, features, hidden}, {tokens, outputs, features}};
  const std::vector<MatrixProduct> data{
      {rows, features, 2 * hidden}, {rows, hidden, features}, {tokens, features, outputs}};
  const double traffic = site.inputs + element_count(layer.output) + 2 * internal_elements(layer);
  LayerCost cost;
  cost.forward = pass(forward, traffic, trainable(layer), 7);
  if (site.data) cost.backward_data = pass(data, traffic, trainable(layer), 7);
  cost.backward_weights = pass(
      {gradient_of_weights(forward[0]), gradient_of_weights(forward[1]), gradient_of_weights(forward[2])},
      traffic, trainable(layer), 3);
  return cost;
}

/// Only the rows of the tokens are read. The gradient of the whole table is written.
LayerCost embedding_cost(const Layer& layer, const Site& site) {
  LayerCost cost;
  cost.forward = pass(0, site.inputs + 2 * element_count(layer.output), 0);
  cost.backward_weights = pass(0, site.inputs + element_count(layer.output), trainable(layer));
  return cost;
}

/// The table is read once a step. Its gradient sums the error signals of all samples.
LayerCost position_cost(const Layer& layer) {
  const double out = element_count(layer.output);
  LayerCost cost;
  cost.forward = pass(0, 2 * out, out);
  if (trainable(layer) > 0) cost.backward_weights = pass(0, out, out);
  return cost;
}

/// A copy of all tokens and of the trained one.
LayerCost class_token_cost(const Layer& layer, const Site& site) {
  LayerCost cost = streaming_cost(site.inputs + element_count(layer.output),
                                  site.inputs + element_count(layer.output), site);
  cost.backward_weights = pass(0, layer.input.back(), trainable(layer));
  return cost;
}

/// Latent attention joins queries and keys of their parts and copies values; what is rotated is put in order,
/// copied, negated, multiplied twice and summed, in two tensors. Nothing is fused. Source: Megatron-Core,
/// multi_latent_attention.py, transformer_config.py ("... does not support apply_rope_fusion").
LayerCost rotary_cost(const Layer& layer, const Site& site) {
  const double rotated = rotated_elements(layer), joined = site.inputs + element_count(layer.output);
  if (layer.inputs.size() == 1) return streaming_cost(2 * rotated, 2 * rotated, site);
  LayerCost cost = streaming_cost(joined + 12 * rotated, joined + 12 * rotated, site);
  for (PassCost* pass : {&cost.forward, &cost.backward_data}) pass->kernels *= 3 + 2 * 6;
  return cost;
}

LayerCost cost_of(const Layer& layer, const Site& site) {
  const double out = element_count(layer.output);
  if (layer.kind == LayerKind::reshape) return {};
  if (layer.kind == LayerKind::gelu) return gelu_cost(out, site);
  if (layer.kind == LayerKind::max_pool) return max_pool_cost(out, site);
  if (is_loss(layer.kind)) return streaming_cost(2 * site.inputs, 2 * site.inputs, site);
  switch (layer.kind) {
    case LayerKind::convolution:
    case LayerKind::locally_connected:
    case LayerKind::dense:
      return product_cost(layer, site, forward_product(layer));
    case LayerKind::lstm:
    case LayerKind::gru:
      return recurrent_cost(layer, site);
    case LayerKind::attention:
      return attention_cost(layer, site);
    case LayerKind::state_space:
      return state_space_cost(layer, site);
    case LayerKind::scale:
      return scale_cost(layer, out, site);
    case LayerKind::batch_norm:
    case LayerKind::layer_norm:
    case LayerKind::rms_norm:
      return norm_cost(layer, site);
    case LayerKind::embedding:
      return embedding_cost(layer, site);
    case LayerKind::experts:
      return experts_cost(layer, site);
    case LayerKind::position_embedding:
      return position_cost(layer);
    case LayerKind::class_token:
      return class_token_cost(layer, site);
    case LayerKind::slice:
    case LayerKind::first_token:  // a view; its error signal is zero for all other tokens
      return streaming_cost(0, site.inputs + out, site);
    case LayerKind::rotary_embedding:
      return rotary_cost(layer, site);
    case LayerKind::swiglu:
      return streaming_cost(site.inputs + out, 2 * site.inputs + out, site);
    case LayerKind::add:
      return streaming_cost(site.inputs + out, 0, {site.inputs, false, {}});  // it passes the gradient on
    case LayerKind::measured:  // only the ratio for other batches is used
    case LayerKind::concatenate:
    case LayerKind::average_pool:
    case LayerKind::up_sample:
      return streaming_cost(site.inputs + out, site.inputs + out, site);
    default:
      return streaming_cost(2 * out, 3 * out, site);
  }
}

/// True if the forward pass of the layer is bound by the memory, and reads what the layer below has written.
bool streams(LayerKind kind) {
  switch (kind) {
    case LayerKind::batch_norm:
    case LayerKind::relu:
    case LayerKind::leaky_relu:
    case LayerKind::elu:
    case LayerKind::sigmoid:
    case LayerKind::tanh:
    case LayerKind::gelu:
    case LayerKind::silu:
    case LayerKind::add:
      return true;
    default:
      return false;
  }
}

/// Gradients of several consumers are summed before the first backward pass.
void add_gradient_sum(const Layer& layer, int readers, LayerCost& cost) {
  if (readers < 2) return;
  PassCost& first = cost.backward_data.kernels > 0 ? cost.backward_data : cost.backward_weights;
  first.activations += (readers + 1) * element_count(layer.output);
  first.kernels += 1;
}

}  // namespace

std::vector<LayerCost> layer_costs(const Model& model, const KernelChoice& choice) {
  const std::vector<bool> data = backward_data_needed(model);
  const std::vector<int> readers = consumers(model);
  std::vector<LayerCost> costs;
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    const Layer& layer = model.layers[i];
    LayerCost cost = cost_of(layer, {input_count(layer), data[i], choice});
    add_gradient_sum(layer, readers[i], cost);
    if (streams(layer.kind)) cost.forward.just_written = element_count(layer.input);
    cost.update = update_cost(layer, choice);
    costs.push_back(cost);
  }
  add_precisions(model, choice, costs);
  return costs;
}

Flops forward_flops(const Model& model) {
  Flops sum;
  for (const LayerCost& cost : layer_costs(model)) sum += cost.forward.flops;
  return sum;
}

Flops training_flops(const Model& model) {
  Flops sum;
  for (const LayerCost& cost : layer_costs(model))
    sum += cost.forward.flops + cost.backward_data.flops + cost.backward_weights.flops;
  return sum;
}

}  // namespace stepcast
