#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "models/cost/cost.hpp"
#include "models/cost/pass_cost.hpp"
#include "models/cost/step_memory.hpp"

namespace stepcast {
namespace {

constexpr double kMask = 1;      // bytes of an element of a dropout mask
constexpr double kPosition = 8;  // bytes of the position of a pooling maximum: a 64-bit integer

/// Number of rows over which a layer norm computes statistics.
double rows(const Layer& layer) {
  return element_count(layer.input) / layer.input.back();
}

/// The softmax over the scores, and with dropout its mask and what it leaves, which the product with the
/// values reads. Autocast computes softmax and dropout in fp32, and that product saves an fp16 copy of its
/// input. Where several heads of queries share keys and values, these are repeated for each head. PyTorch
/// before 1.11 also saves the input of the softmax.
/// Source: aten/src/ATen/autocast_mode.{h,cpp} of pytorch/pytorch, lists of fp32 and of fp16 operators.
SavedTensors eager_attention(const Layer& layer, const MemoryOptions& options) {
  const double scores = internal_elements(layer);
  const bool drops = layer.coefficient > 0, grouped = layer.kv_heads > 0;
  SavedTensors saved{.input = !grouped};
  if (grouped) saved.elements.assign(3, element_count(layer.output));
  if (drops) saved.bytes = {kMask * scores};
  if (options.softmax_input && autocast(options)) saved.bytes.push_back(kFp32Bytes * scores);
  if (options.softmax_input && !autocast(options)) saved.elements.push_back(scores);
  if (autocast(options)) {
    saved.bytes.insert(saved.bytes.end(), {kFp32Bytes * scores, kHalfBytes * scores});
  } else {
    saved.elements.insert(saved.elements.end(), drops ? 2 : 1, scores);
  }
  return saved;
}

/// cuDNN or a fused kernel of attention keeps the logarithm of each row's sum instead of the scores, and
/// draws the mask of dropout again.
SavedTensors attention_tensors(const Layer& layer, const MemoryOptions& options) {
  if (options.attention == MemoryOptions::Attention::eager || layer.position_bias >= 0)
    return eager_attention(layer, options);
  const double sums = layer.heads * layer.input.front();
  return {.input = true, .output = true, .bytes = {kFp32Bytes * sums}};
}

/// The positions of the maxima; TensorFlow looks for them again.
SavedTensors max_pool_tensors(double out, bool tensorflow) {
  if (tensorflow) return {.input = true, .output = true};
  return {.input = true, .bytes = {kPosition * out}};
}

/// The fused kernel keeps its input, the output of the scan and one statistic of the norm for each token.
/// Source: MambaSplitConv1dScanCombinedFn in ssd_combined.py of state-spaces/mamba.
SavedTensors state_space_tensors(const Layer& layer) {
  return {.input = true, .elements = {internal_elements(layer)}, .bytes = {kFp32Bytes * rows(layer)}};
}

/// True if the backward pass of the kind needs the layer's input and nothing else, in every framework.
bool saves_input_only(LayerKind kind) {
  switch (kind) {
    case LayerKind::convolution:
    case LayerKind::locally_connected:
    case LayerKind::dense:
    case LayerKind::embedding:
    case LayerKind::silu:
    case LayerKind::scale:
      return true;
    default:
      return false;
  }
}

/// True if the backward pass of the kind needs no tensor of the forward pass.
bool saves_nothing(LayerKind kind) {
  switch (kind) {
    case LayerKind::add:
    case LayerKind::concatenate:
    case LayerKind::up_sample:
    case LayerKind::reshape:
    case LayerKind::slice:
    case LayerKind::rotary_embedding:  // its sines and cosines are one table for all layers
    case LayerKind::position_embedding:
    case LayerKind::class_token:
    case LayerKind::first_token:
      return true;
    default:
      return false;
  }
}

/// Norms save their input and their statistics: of each channel (batch norm) or of each row.
SavedTensors norm_tensors(const Layer& layer, bool fused) {
  if (layer.kind == LayerKind::batch_norm)  // mean and inverse deviation
    return {.input = true, .fixed = std::vector(2, kFp32Bytes * layer.input.front())};
  const double statistic = kFp32Bytes * rows(layer);
  if (layer.kind == LayerKind::layer_norm) return {.input = true, .bytes = {statistic, statistic}};
  if (fused) return {.input = true, .bytes = {statistic}};
  // RMS norm is written out in PyTorch: the product with the scale saves what it scales.
  return {.input = true, .elements = {element_count(layer.output)}, .bytes = {statistic}};
}

/// Cross-entropy of a softmax saves the logarithms of the softmax, in TensorFlow the derivative itself; a
/// PyTorch loop may also hold the logits. Under autocast, the logarithms of fp16 logits are fp16, and the sum
/// over the labels saves an fp32 copy of them. The other losses save their input and the labels.
/// Source: cross_entropy_loss in aten/src/ATen/native/LossNLL.cpp of pytorch/pytorch (the logarithms have the
/// type of the logits), list of fp32 operators in aten/src/ATen/autocast_mode.h (nll_loss).
SavedTensors loss_tensors(const Layer& layer, const MemoryOptions& options) {
  const double inputs = element_count(layer.input);
  if (layer.kind != LayerKind::softmax_cross_entropy) return {.input = true, .bytes = {kFp32Bytes * inputs}};
  if (options.cross_entropy == KernelChoice::CrossEntropy::fused)
    return {};  // it keeps the derivative in place of the logits
  const bool tensorflow = options.framework == MemoryOptions::Framework::tensorflow;
  const bool held = options.keep_logits || options.softmax_input;
  SavedTensors saved{.input = !tensorflow && held};
  if (autocast(options) && !options.fp32_logits) saved.bytes.push_back(kHalfBytes * inputs);
  if (autocast(options) && options.fp32_logits && options.softmax_input)
    saved.bytes.push_back(kFp32Bytes * inputs);
  saved.bytes.push_back(kFp32Bytes * inputs);
  return saved;
}

/// GELU in one kernel saves its input. Written out, the product of 0.5 x with 1 + tanh or 1 + erf saves both;
/// the tanh form also saves the input of its power and the tanh, the exact form the input of erf. Autocast
/// computes the power, and what follows, in fp32.
SavedTensors gelu_tensors(const Layer& layer, const MemoryOptions& options) {
  const double out = element_count(layer.output);
  if (options.gelu == KernelChoice::Gelu::fused) return {.input = true};
  if (options.gelu == KernelChoice::Gelu::eager_erf) return {.elements = {out, out, out}};
  if (!autocast(options)) return {.input = true, .elements = {out, out, out}};
  return {.bytes = {kHalfBytes * out, kFp32Bytes * out, kFp32Bytes * out, kFp32Bytes * out}};
}

}  // namespace

bool autocast(const MemoryOptions& options) {
  return options.framework == MemoryOptions::Framework::pytorch &&
         options.precision == MemoryOptions::Precision::mixed && !options.half_parameters;
}

std::vector<double> output_widths(const Model& model, const MemoryOptions& options) {
  const bool mixed = options.precision == MemoryOptions::Precision::mixed;
  if (autocast(options)) return autocast_widths(model, options.gelu);
  return std::vector(model.layers.size(), mixed ? kHalfBytes : kFp32Bytes);
}

void save_casts(const Layer& layer, double input_width, SavedTensors& saved) {
  const bool down = computes_in_half(layer.kind) && input_width == kFp32Bytes;
  const bool up = computes_in_single(layer.kind) && input_width == kHalfBytes && !is_loss(layer.kind);
  if (!down && !up) return;
  saved.input = false;
  saved.bytes.push_back((down ? kHalfBytes : kFp32Bytes) * element_count(layer.input));
}

SavedTensors saved_tensors(const Layer& layer, const MemoryOptions& options, bool in_place) {
  if (options.framework == MemoryOptions::Framework::lbann)
    throw std::invalid_argument("saved_tensors: LBANN saves every output");
  const bool tensorflow = options.framework == MemoryOptions::Framework::tensorflow;
  const bool fused = options.elementwise == KernelChoice::Elementwise::fused;
  if (saves_nothing(layer.kind)) return {};
  if (saves_input_only(layer.kind)) return {.input = true};
  if (is_loss(layer.kind)) return loss_tensors(layer, options);
  const double out = element_count(layer.output);
  if (layer.kind == LayerKind::gelu) return gelu_tensors(layer, options);
  if (layer.kind == LayerKind::dropout) return {.bytes = {kMask * out}};
  switch (layer.kind) {
    case LayerKind::swiglu:  // the product saves half of the input and the output of silu
      return fused ? SavedTensors{.input = true} : SavedTensors{.input = true, .elements = {out}};
    case LayerKind::batch_norm:
    case LayerKind::layer_norm:
    case LayerKind::rms_norm:
      return norm_tensors(layer, fused);
    case LayerKind::relu:
    case LayerKind::sigmoid:
    case LayerKind::tanh:
      return {.output = true};
    case LayerKind::leaky_relu:
    case LayerKind::elu:
      return {.input = !in_place, .output = in_place};
    case LayerKind::max_pool:
      return max_pool_tensors(out, tensorflow);
    case LayerKind::average_pool:  // TensorFlow reads the input's shape only
      return {.input = !tensorflow};
    case LayerKind::lstm:
    case LayerKind::gru:  // cuDNN's reserve: gates and cells
      return {.input = true, .output = true, .elements = {internal_elements(layer)}};
    case LayerKind::measured:  // what it keeps is not known: both, as most kernels do
      return {.input = true, .output = true};
    case LayerKind::experts:
      return {.input = true, .elements = {internal_elements(layer)}};
    case LayerKind::attention:
      return attention_tensors(layer, options);
    case LayerKind::state_space:
      return state_space_tensors(layer);
    default:
      throw std::logic_error(std::string("saved_tensors has no rule for layers of kind ") +
                             to_string(layer.kind));
  }
}

namespace {

/// Workspace of cuDNN for a convolution with a window of 3 or more, in bytes of its filters: 56.6 MB beside
/// filters of 9.44 MB. Source: memory events of ResNet-50 on a V100, pytorch/kineto at 041e7ce99f15,
/// tb_plugin/samples/resnet50_num_workers_0.
constexpr double kWorkspaceFilters = 6;

/// Workspace of cuBLAS. Source: aten/src/ATen/cuda/CublasHandlePool.cpp of pytorch/pytorch, default
/// CUBLAS_WORKSPACE_CONFIG :4096:2:16:8.
constexpr double kProducts = (2 * 4096 + 8 * 16) * 1024.0;

/// Channels in a multiple of which kernels of tensor cores read 16-bit images.
constexpr double kChannelMultiple = 8;

/// Kernels of tensor cores read images with channels last, which PyTorch's networks do not hold: cuDNN copies
/// the input and the output of a convolution into its workspace, or their derivatives, and the filters.
/// Windows of 1 at stride 1 are products of matrices, and PyTorch has kernels of its own for depthwise
/// convolutions; they need no copy. The copies are seen as kernels
/// `nchwToNhwc` in a profile of ResNet-50 on an A100 (models/measured/layers.csv).
double channels_last_copies(const Layer& layer, double samples, double filters) {
  const bool product =
      std::ranges::max(layer.window.kernel) == 1 && std::ranges::max(layer.window.stride) == 1;
  if (product || is_depthwise(layer)) return 0;
  const auto padded = [](const Shape& shape) {
    const double channels = shape.front();
    return std::ceil(channels / kChannelMultiple) * kChannelMultiple / channels * element_count(shape);
  };
  return kHalfBytes * (samples * (padded(layer.input) + padded(layer.output)) + filters);
}

}  // namespace

double kernel_workspace(const Layer& layer, const MemoryOptions& options, double samples) {
  if (options.workspace) return options.workspace->value;
  if (layer.kind == LayerKind::dense || layer.kind == LayerKind::attention) return kProducts;
  if (layer.kind != LayerKind::convolution) return 0;
  double filters = 0;
  for (const ParameterTensor& tensor : layer.parameters)
    filters = std::max<double>(filters, tensor.elements());
  if (autocast(options)) return channels_last_copies(layer, samples, filters);
  if (std::ranges::min(layer.window.kernel) < 3) return 0;
  const bool half = options.precision == MemoryOptions::Precision::mixed;
  return kWorkspaceFilters * (half ? kHalfBytes : kFp32Bytes) * filters;
}

}  // namespace stepcast
