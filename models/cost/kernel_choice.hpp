#pragma once

#include <string>
#include <vector>

#include "core/keys.hpp"
#include "core/typed_numbers.hpp"
#include "core/words.hpp"

namespace stepcast {

/// Choices of a framework: the precision of products, and kernels that compute the same in other ways.
/// Only devices with KernelShares know it (docs/explanation/derived-traces.md).
struct KernelChoice {
  enum class Precision {
    f32,
    tf32,
    f16,
    bf16,
    fp8,  ///< dense layers of blocks and experts in fp8, with scales of whole tensors; the rest in bf16
  };
  enum class Attention {
    eager,          ///< product, scale, mask, softmax, product
    fused_softmax,  ///< scale, mask and softmax in one kernel, as in Megatron-LM and Apex
    flash,          ///< one kernel, which keeps the scores on the chip
    flash_1,        ///< the same in the first version of FlashAttention, of 2022
  };
  enum class Gelu {
    fused,      ///< one kernel, as torch.nn.functional.gelu
    eager,      ///< the tanh form written out, as gelu_new of Hugging Face
    eager_erf,  ///< the exact form written out, x 0.5 (1 + erf(x / sqrt 2)), as the first BERT in PyTorch
  };
  enum class CrossEntropy {
    log_softmax,  ///< the logarithms of softmax, then their sum over the labels, as PyTorch's cross_entropy
    vocab_parallel,  ///< a kernel for each operation on fp32 logits, as Megatron-LM's
                     ///< vocab_parallel_cross_entropy
    fused,           ///< one kernel, which writes the derivative over the logits, as Transformer Engine
  };
  enum class Elementwise {
    eager,  ///< RMS norm and SwiGLU save results of their parts, too
    fused,  ///< one kernel each, which saves its input, as Transformer Engine, Liger and torch.compile
  };
  enum class GradientSums {
    separate,  ///< products return gradients of weights, which a kernel of its own adds to the sum
    fused,     ///< products add gradients of half precision to fp32 ones, as Transformer Engine's do
  };
  enum class Layout {
    nchw,  ///< channels first: kernels of tensor cores copy activations to the other layout and back
    nhwc,  ///< channels last, as torch.channels_last
  };
  enum class UpdateRule { sgd, momentum, adam, adamw };  ///< of the optimizer whose kernels are counted
  enum class Update {
    foreach,   ///< a kernel for each operation, over all tensors
    for_loop,  ///< a kernel for each operation and tensor
    fused,     ///< one kernel for all operations
  };

  Precision precision = Precision::f32;
  Attention attention = Attention::eager;
  Gelu gelu = Gelu::fused;
  UpdateRule optimizer = UpdateRule::momentum;
  Update update = Update::foreach;
  Layout layout = Layout::nchw;
  CrossEntropy cross_entropy = CrossEntropy::log_softmax;
  Elementwise elementwise = Elementwise::eager;
  GradientSums gradient_sums = GradientSums::separate;
  bool fp32_scores = false;  ///< eager attention in half precision: softmax in fp32 between two casts
  bool autocast = false;     ///< PyTorch's autocast chooses the precision of each layer (see add_autocast)

  bool operator==(const KernelChoice&) const = default;

  bool half() const { return precision >= Precision::f16; }  ///< elements of activations have 2 bytes
  /// Products of weights' gradients add them to fp32 sums.
  bool adds_to_sums() const { return gradient_sums == GradientSums::fused && half() && !autocast; }
};

/// True for kernels that keep the scores on the chip.
constexpr bool is_flash(KernelChoice::Attention attention) {
  return attention == KernelChoice::Attention::flash || attention == KernelChoice::Attention::flash_1;
}

const Words<KernelChoice::Precision>& precision_words();
const Words<KernelChoice::Attention>& attention_words();
const Words<KernelChoice::Gelu>& gelu_words();
const Words<KernelChoice::UpdateRule>& optimizer_words();
const Words<KernelChoice::Update>& update_words();
const Words<KernelChoice::Layout>& layout_words();
const Words<KernelChoice::CrossEntropy>& cross_entropy_words();
const Words<KernelChoice::Elementwise>& elementwise_words();
const Words<KernelChoice::GradientSums>& gradient_sums_words();

/// The choices that differ from the default, such as "precision f16, attention flash"; empty: none.
std::string to_string(const KernelChoice& choice);

/// The choices that differ from the default, as options of `stepcast derive`, such as " --precision f16
/// --attention flash".
std::string to_flags(const KernelChoice& choice);

/// Reads `kernels:` of a scenario. @throws InputError
KernelChoice read_kernel_choice(const YamlValue& value);
const Keys& kernel_choice_keys();

/// The shares that the kernels of one library generation (cuDNN and a framework of 2019 and later) reach in
/// one precision of a device.
struct KernelShares {
  Seconds gap;            ///< between two kernels
  Seconds tile;           ///< fixed time of a tile of a product (see product_time)
  double streaming = 1;   ///< share of the memory bandwidth: ReLU, additions, updates
  double max_pool = 0;    ///< share of the bandwidth: max pools; 0: as streaming
  double batch_norm = 1;  ///< share of the bandwidth: batch norm
  double layer_norm = 1;  ///< share of the bandwidth: layer norm
  double cast = 0;        ///< share of the bandwidth: casts to fp32, sums of two precisions; 0: as streaming
  double dense = 1;       ///< share of the peak in a tile without end: dense layers and attention
  double unaligned = 1;   ///< dense layers of which a size is no multiple of 16 bytes: factor on `dense`
  double flash = 0;       ///< share of the peak: a flash kernel of attention; 0: there is none
  double pointwise = 1;   ///< as dense: convolutions with a window of 1
  double window = 1;      ///< as dense: other convolutions, multiplied by `winograd` and `fft`
  double winograd = 1;    ///< Winograd's algorithm divides the work of 2-D windows of 3 at stride 1 by this
  double fft = 1;  ///< a fast Fourier transform divides the work of larger 2-D windows at stride 1 by this
  Seconds recurrent_step;  ///< time of the small kernels in one time step of an LSTM or GRU
  double weights = 1;      ///< gradients of filters, with TF32 of all weights: factor on the shares
  Bytes cache{};           ///< largest output that the next layer reads from the second-level cache; 0: none
  /// Above 0: convolutions with a window of 2 and more, or a stride, copy inputs and outputs to another
  /// layout, and pad their input channels to a multiple of this.
  double channel_multiple = 0;
  KernelChoice choice = {};
};

}  // namespace stepcast
