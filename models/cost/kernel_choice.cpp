#include "models/cost/kernel_choice.hpp"

#include <algorithm>
#include <type_traits>

namespace stepcast {

const std::vector<std::string>& precision_names() {
  static const std::vector<std::string> words{"f32", "tf32", "f16", "bf16", "fp8"};
  return words;
}

const std::vector<std::string>& attention_names() {
  static const std::vector<std::string> words{"eager", "fused_softmax", "flash"};
  return words;
}

const std::vector<std::string>& gelu_names() {
  static const std::vector<std::string> words{"fused", "eager", "eager_erf"};
  return words;
}

const std::vector<std::string>& optimizer_names() {
  static const std::vector<std::string> words{"sgd", "momentum", "adam", "adamw"};
  return words;
}

const std::vector<std::string>& update_names() {
  static const std::vector<std::string> words{"foreach", "for_loop", "fused"};
  return words;
}

const std::vector<std::string>& layout_names() {
  static const std::vector<std::string> words{"nchw", "nhwc"};
  return words;
}

const std::vector<std::string>& cross_entropy_names() {
  static const std::vector<std::string> words{"log_softmax", "vocab_parallel", "fused"};
  return words;
}

const std::vector<std::string>& elementwise_names() {
  static const std::vector<std::string> words{"eager", "fused"};
  return words;
}

namespace {

struct Chosen {
  std::string key, word;
};

/// The choices that differ from the default.
std::vector<Chosen> chosen(const KernelChoice& choice) {
  const KernelChoice usual;
  std::vector<Chosen> result;
  const auto add = [&](const char* key, auto KernelChoice::*member, const std::vector<std::string>& words) {
    if (choice.*member != usual.*member)
      result.push_back({key, words[static_cast<std::size_t>(choice.*member)]});
  };
  add("precision", &KernelChoice::precision, precision_names());
  add("attention", &KernelChoice::attention, attention_names());
  add("gelu", &KernelChoice::gelu, gelu_names());
  add("optimizer", &KernelChoice::optimizer, optimizer_names());
  add("update", &KernelChoice::update, update_names());
  add("layout", &KernelChoice::layout, layout_names());
  add("cross_entropy", &KernelChoice::cross_entropy, cross_entropy_names());
  add("elementwise", &KernelChoice::elementwise, elementwise_names());
  return result;
}

}  // namespace

std::string to_string(const KernelChoice& choice) {
  std::string text;
  for (const Chosen& one : chosen(choice)) text += (text.empty() ? "" : ", ") + one.key + " " + one.word;
  if (choice.autocast) text += text.empty() ? "autocast" : ", autocast";
  return text;
}

std::string to_flags(const KernelChoice& choice) {
  std::string text;
  for (Chosen& one : chosen(choice)) {
    std::ranges::replace(one.key, '_', '-');
    text += " --" + one.key + " " + one.word;
  }
  return choice.autocast ? text + " --autocast" : text;
}

const Keys& kernel_choice_keys() {
  static const Keys keys{
      {"precision", "name", "f32, tf32, f16, bf16, fp8", "f32",
       "precision of products; the device file lists those that it has; `fp8`: of dense layers in blocks and "
       "of experts, with bf16 elsewhere"},
      {"attention", "name", "eager, fused_softmax, flash", "eager",
       "`eager`: a kernel for each operation; `fused_softmax`: one kernel for scale, mask and softmax; "
       "`flash`: one kernel, which keeps the scores on the chip"},
      {"gelu", "name", "fused, eager, eager_erf", "fused",
       "`fused`: GELU in one kernel; `eager`: its tanh form with a kernel for each operation; `eager_erf`: "
       "its "
       "exact form, likewise"},
      {"optimizer", "name", "sgd, momentum, adam, adamw", "momentum", "optimizer whose update is counted"},
      {"update", "name", "foreach, for_loop, fused", "foreach",
       "`foreach`: a kernel for each operation of the optimizer; `for_loop`: for each operation and tensor; "
       "`fused`: for all operations"},
      {"layout", "name", "nchw, nhwc", "nchw",
       "layout of activations; kernels of tensor cores copy activations with `nchw` to another layout"},
      {"cross_entropy", "name", "log_softmax, vocab_parallel, fused", "log_softmax",
       "`log_softmax`: PyTorch's `cross_entropy`; `vocab_parallel`: Megatron-LM's, a kernel for each "
       "operation on fp32 "
       "logits; `fused`: one kernel, which writes the derivative over the logits"},
      {"elementwise", "name", "eager, fused", "eager",
       "`fused`: RMS norm and SwiGLU save only their input for the backward pass, as Transformer Engine's "
       "do"},
      {"autocast", "boolean", "", "false",
       "with f16 and bf16: whether PyTorch's autocast keeps weights, norms and losses in fp32 and casts what "
       "products read; otherwise all tensors have 2 bytes an element"}};
  return keys;
}

KernelChoice read_kernel_choice(const YamlValue& value) {
  const YamlMap map = read_map(value, kernel_choice_keys());
  KernelChoice choice;
  const auto read = [&](const char* key, auto& into, const std::vector<std::string>& words) {
    if (const auto word = map.maybe(key))
      into = static_cast<std::decay_t<decltype(into)>>(word->one_of(words));
  };
  read("precision", choice.precision, precision_names());
  read("attention", choice.attention, attention_names());
  read("gelu", choice.gelu, gelu_names());
  read("optimizer", choice.optimizer, optimizer_names());
  read("update", choice.update, update_names());
  read("layout", choice.layout, layout_names());
  read("cross_entropy", choice.cross_entropy, cross_entropy_names());
  read("elementwise", choice.elementwise, elementwise_names());
  if (const auto yes = map.maybe("autocast")) choice.autocast = yes->boolean();
  return choice;
}

}  // namespace stepcast
