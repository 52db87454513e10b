#include "models/cost/roofline.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace stepcast {
namespace {

/// Multiplications saved by Winograd's F(2x2, 3x3): 36 against 16.
/// Source: A. Lavin, S. Gray, Fast algorithms for convolutional neural networks, CVPR 2016, section 4.1.
constexpr double kFastConvolution = 2.25;
/// Share of FlashAttention's first version in that of the second: 25 to 40 % against 50 to 73 % of an A100's
/// peak (T. Dao, FlashAttention-2, arXiv:2307.08691, abstract), the middles of both.
constexpr double kFirstFlash = 0.53;

constexpr Bytes kFp32{kFp32Bytes};

/// Side of a 2-D convolution's window at stride 1 for which libraries have fast algorithms; 0: they have
/// none.
std::int64_t fast_window(const Layer& layer) {
  if (layer.kind != LayerKind::convolution || layer.input.size() != 3 || layer.groups > 1) return 0;
  const Window& window = layer.window;
  if (std::ranges::min(window.kernel) < 3 || std::ranges::max(window.stride) > 1) return 0;
  return std::ranges::max(window.kernel);
}

/// The gain of the older rule.
double arithmetic_gain(const Layer& layer, const Device& device) {
  const std::int64_t window = fast_window(layer);
  const int since = window == 3 ? 5 : 3;  // cuDNN 3 brought FFT, cuDNN 5 Winograd
  return window > 0 && device.cudnn >= since ? kFastConvolution : 1;
}

double arithmetic_gain(const Layer& layer, const KernelShares& kernels) {
  const std::int64_t window = fast_window(layer);
  return window == 0 ? 1 : window == 3 ? kernels.winograd : kernels.fft;
}

Bytes element_size(const KernelShares& kernels) {
  return {kernels.choice.half() ? kHalfBytes : kFp32Bytes};
}

/// Factor on the rate of a dense layer. Kernels of tensor cores load 16 bytes at once; of arrays whose rows
/// begin elsewhere they load fewer elements, and one at a time if a row has an odd number of them.
double alignment_factor(const Layer& layer, const KernelShares& kernels) {
  if (layer.kind != LayerKind::dense) return 1;
  const auto aligned = static_cast<std::int64_t>(16 / element_size(kernels).value);
  const std::int64_t common = std::gcd(layer.input.back(), layer.output.back());
  if (common % aligned == 0) return 1;
  return kernels.unaligned < 1 && common % 2 != 0 ? kernels.unaligned / 2 : kernels.unaligned;
}

/// Share of the peak at which the products of a layer run.
double product_share(const Layer& layer, const KernelShares& kernels) {
  if (layer.kind == LayerKind::attention) {
    const KernelChoice::Attention attention = attention_kernels(layer, kernels.choice);
    if (is_flash(attention))
      return kernels.flash * (attention == KernelChoice::Attention::flash_1 ? kFirstFlash : 1);
  }
  if (layer.kind != LayerKind::convolution && layer.kind != LayerKind::locally_connected)
    return kernels.dense * alignment_factor(layer, kernels);
  const bool pointwise = std::ranges::max(layer.window.kernel) == 1;
  return pointwise ? kernels.pointwise : kernels.window;
}

/// Share of the multiprocessors that batch norm keeps busy. With channels first, cuDNN's kernels give each
/// channel to one block of threads. Source: their grids (channels, 1, 1) in profiles of ResNet-50 on a V100
/// and an A100.
double busy_share(const Layer& batch_norm, const Device& device) {
  const bool by_channel = device.kernels->choice.layout == KernelChoice::Layout::nchw;
  if (!by_channel || device.multiprocessors == 0) return 1;
  return std::min(1.0, static_cast<double>(batch_norm.input.front()) / device.multiprocessors);
}

double bandwidth_share(const Layer& layer, const Device& device) {
  const KernelShares& kernels = *device.kernels;
  if (layer.kind == LayerKind::batch_norm) return kernels.batch_norm * busy_share(layer, device);
  if (layer.kind == LayerKind::layer_norm) return kernels.layer_norm;
  return layer.kind == LayerKind::max_pool && kernels.max_pool > 0 ? kernels.max_pool : kernels.streaming;
}

/// Bytes of an array that the cache still holds when the next kernel reads it: all of it up to the size of
/// the cache, nothing from twice that size on.
Bytes cached(Bytes array, const KernelShares& kernels) {
  if (!(kernels.cache.value > 0)) return {0};
  return std::clamp(2 - array / kernels.cache, 0.0, 1.0) * array;
}

/// Number of output positions of one image if the convolution is computed as one matrix product for each
/// image, else 0. Convolutions with a window of 1 at stride 1 are, on tensor cores with channels first.
/// Source: the profile of ResNet-50 on an A100, where grids of `cutlass_80_tensorop_s1688gemm` have one plane
/// for each image.
double positions_by_image(const Layer& layer, const KernelShares& kernels) {
  const bool first = kernels.choice.layout == KernelChoice::Layout::nchw;
  if (!(kernels.channel_multiple > 0) || layer.kind != LayerKind::convolution || !first) return 0;
  if (layer.groups > 1 || std::ranges::max(layer.window.kernel) > 1) return 0;
  if (std::ranges::max(layer.window.stride) > 1) return 0;
  const double positions = element_count(layer.output) / layer.output.front();
  return positions > 1 ? positions : 0;
}

/// True if the rows of one image begin at multiples of 16 bytes. The products of images load 16 bytes at
/// once.
bool aligned(double positions, const KernelShares& kernels) {
  return std::fmod(positions * element_size(kernels).value, 16) == 0;
}

/// True if the kernels of the layer need channels last and in a multiple. Depthwise convolutions do not run
/// on tensor cores (PyTorch has kernels of its own for them).
bool needs_channels_last(const Layer& layer, const KernelShares& kernels) {
  if (!(kernels.channel_multiple > 0) || layer.kind != LayerKind::convolution) return false;
  if (is_depthwise(layer)) return false;
  const double positions = positions_by_image(layer, kernels);
  if (positions > 0 && !aligned(positions, kernels)) return true;
  return std::ranges::max(layer.window.kernel) > 1 || std::ranges::max(layer.window.stride) > 1;
}

/// Work over that of the layer, as kernels of tensor cores pad the input channels.
double padded(const Layer& layer, const KernelShares& kernels) {
  if (!needs_channels_last(layer, kernels)) return 1;
  const double channels = static_cast<double>(layer.input.front()) / layer.groups;
  return std::ceil(channels / kernels.channel_multiple) * kernels.channel_multiple / channels;
}

/// Seconds of the kernels in addition to those of the pass itself: copies to another layout, sums of biases'
/// gradients.
Seconds other_kernels(const Layer& layer, const PassCost& cost, std::int64_t batch, const Device& device) {
  const KernelShares& kernels = *device.kernels;
  const bool copies =
      kernels.choice.layout == KernelChoice::Layout::nchw && needs_channels_last(layer, kernels);
  const double elements = copies ? cost.other_layout : 0;
  const Bytes copied = batch * elements * element_size(kernels);
  const Bytes summed = batch * cost.bias * element_size(kernels);
  const Seconds gap = cost.bias > 0 ? kernels.gap : Seconds{};
  return gap +
         (2 * copied - cached(copied, kernels) + summed) / (kernels.streaming * device.memory_bandwidth);
}

/// Seconds of the casts of autocast.
Seconds cast_time(const PassCost& cost, std::int64_t batch, const Device& device) {
  const KernelShares& kernels = *device.kernels;
  const double samples = batch;
  const Bytes narrowed{samples * cost.narrowed + cost.narrowed_weights};
  const Bytes widened{samples * cost.widened + cost.widened_weights};
  const double widening = kernels.cast > 0 ? kernels.cast : kernels.streaming;
  return narrowed / (kernels.streaming * device.memory_bandwidth) +
         widened / (widening * device.memory_bandwidth);
}

bool is_recurrent(const Layer& layer) {
  return layer.kind == LayerKind::lstm || layer.kind == LayerKind::gru;
}

/// True if the products of attention and the passes over its scores are kernels of their own, or those of
/// experts and what moves their rows.
bool takes_turns(const Layer& layer, const KernelShares& kernels) {
  if (layer.kind == LayerKind::experts) return true;
  return layer.kind == LayerKind::attention && !is_flash(attention_kernels(layer, kernels.choice));
}

/// Time of the products of a pass.
Seconds products_time(const Layer& layer, const PassCost& cost, std::int64_t batch, const Device& device) {
  const KernelShares& kernels = *device.kernels;
  // Tensor cores load operands of 2 bytes transposed, but not those of TF32.
  const bool slow =
      layer.kind == LayerKind::convolution || kernels.choice.precision == KernelChoice::Precision::tf32;
  const PrecisionKernels* fp8 = cost.fp8 && device.fp8 ? &*device.fp8 : nullptr;
  const double share = fp8 != nullptr
                           ? fp8->kernels.dense * fp8->peak / device.peak  // of the peak of bf16
                           : product_share(layer, kernels) * (cost.weights && slow ? kernels.weights : 1);
  if (cost.products.empty()) return batch * cost.flops / (share * device.peak);
  const double positions = positions_by_image(layer, kernels);
  const bool by_image = positions > 0 && !cost.weights && aligned(positions, kernels);
  // Attention's passes over the scores and `recurrent_step` contain it.
  const bool contained = takes_turns(layer, kernels) && layer.kind == LayerKind::attention;
  const Seconds tile = contained || is_recurrent(layer) ? Seconds{} : kernels.tile;
  Seconds sum;
  for (MatrixProduct product : cost.products) {
    if (by_image) product.samples = MatrixProduct::Samples::products;
    sum += product_time(product, batch, device, share, tile);
  }
  return padded(layer, kernels) / arithmetic_gain(layer, kernels) * sum;
}

/// The parts of the rule of KernelShares.
Roofline generation_parts(const Layer& layer, const PassCost& cost, std::int64_t batch,
                          const Device& device) {
  const KernelShares& kernels = *device.kernels;
  const bool update = cost.activations == 0;
  const Bytes own = cost.width > 0 ? Bytes{cost.width} : element_size(kernels);
  const Bytes element = update ? kFp32 : own;  // optimizers keep fp32
  const double samples = batch;
  const Bytes further = (samples * cost.further_activations + cost.further_parameters) * element;
  const Bytes from_cache = cached(samples * cost.just_written * element, kernels);
  const Bytes moved = cost.bytes(batch, element) + further - from_cache;
  return {cost.kernels * (is_recurrent(layer) ? kernels.recurrent_step : kernels.gap) +
              other_kernels(layer, cost, batch, device) + cast_time(cost, batch, device),
          products_time(layer, cost, batch, device),
          moved / (bandwidth_share(layer, device) * device.memory_bandwidth)};
}

}  // namespace

Roofline roofline(const Layer& layer, const PassCost& cost, std::int64_t batch, const Device& device) {
  if (device.kernels) return generation_parts(layer, cost, batch, device);
  const Flops work = batch * cost.flops;
  return {cost.kernels * device.launch_overhead, work / (arithmetic_gain(layer, device) * device.peak),
          cost.bytes(batch, kFp32) / (kStreamingShare * device.memory_bandwidth)};
}

Seconds roofline_time(const Layer& layer, const PassCost& cost, std::int64_t batch, const Device& device,
                      double efficiency) {
  const Roofline parts = roofline(layer, cost, batch, device);
  // Products and passes over the scores or rows take turns.
  if (device.kernels && takes_turns(layer, *device.kernels))
    return parts.launching + parts.computing + parts.streaming;
  return parts.launching + std::max(parts.computing, parts.streaming) / efficiency;
}

Seconds roofline_step(const Model& model, std::int64_t batch, const Device& device, double efficiency) {
  const std::vector<LayerCost> costs = layer_costs(model, device.choice());
  Seconds sum;
  for (std::size_t i = 0; i < costs.size(); ++i) {
    for (const PassCost& cost :
         {costs[i].forward, costs[i].backward_data, costs[i].backward_weights, costs[i].update}) {
      sum += roofline_time(model.layers[i], cost, batch, device, efficiency);
    }
  }
  return sum;
}

}  // namespace stepcast
