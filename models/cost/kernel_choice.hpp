#pragma once

#include <string>
#include <vector>

#include "core/keys.hpp"

namespace stepcast {

/// Choices of a framework: the precision of products, and kernels that compute the same in other ways.
/// Only devices with KernelShares know it (docs/explanation/derived-traces.md).
struct KernelChoice {
  enum class Precision { f32, tf32, f16, bf16 };
  enum class Attention {
    eager,          ///< product, scale, mask, softmax, product
    fused_softmax,  ///< scale, mask and softmax in one kernel, as in Megatron-LM and Apex
    flash,          ///< one kernel, which keeps the scores on the chip
  };
  enum class Gelu {
    fused,  ///< one kernel, as torch.nn.functional.gelu
    eager,  ///< the tanh form written out, as gelu_new of Hugging Face
  };
  enum class Layout {
    nchw,  ///< channels first: kernels of tensor cores copy activations to the other layout and back
    nhwc,  ///< channels last, as torch.channels_last
  };
  enum class Optimizer { sgd, momentum, adam };
  enum class Update {
    foreach,   ///< a kernel for each operation, over all tensors
    for_loop,  ///< a kernel for each operation and tensor
    fused,     ///< one kernel for all operations
  };

  Precision precision = Precision::f32;
  Attention attention = Attention::eager;
  Gelu gelu = Gelu::fused;
  Optimizer optimizer = Optimizer::momentum;
  Update update = Update::foreach;
  Layout layout = Layout::nchw;

  bool operator==(const KernelChoice&) const = default;

  bool half() const { return precision == Precision::f16 || precision == Precision::bf16; }
};

/// Names in YAML files and on the command line, in the order of the enums.
const std::vector<std::string>& precision_names();
const std::vector<std::string>& attention_names();
const std::vector<std::string>& gelu_names();
const std::vector<std::string>& optimizer_names();
const std::vector<std::string>& update_names();
const std::vector<std::string>& layout_names();

/// The choices that differ from the default, such as "precision f16, attention flash"; empty: none.
std::string to_string(const KernelChoice& choice);

/// The same as options of `stepcast derive`, such as " --precision f16 --attention flash".
std::string to_flags(const KernelChoice& choice);

/// Reads `kernels:` of a scenario. @throws InputError
KernelChoice read_kernel_choice(const YamlValue& value);
const Keys& kernel_choice_keys();

}  // namespace stepcast
