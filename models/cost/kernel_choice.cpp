#include "models/cost/kernel_choice.hpp"

#include <algorithm>

#include "core/fields.hpp"

namespace stepcast {

const Words<KernelChoice::Precision>& precision_words() {
  using Precision = KernelChoice::Precision;
  static const Words<Precision> words{{"f32", Precision::f32},
                                      {"tf32", Precision::tf32},
                                      {"f16", Precision::f16},
                                      {"bf16", Precision::bf16},
                                      {"fp8", Precision::fp8}};
  return words;
}

const Words<KernelChoice::Attention>& attention_words() {
  using Attention = KernelChoice::Attention;
  static const Words<Attention> words{{"eager", Attention::eager},
                                      {"fused_softmax", Attention::fused_softmax},
                                      {"flash", Attention::flash},
                                      {"flash_1", Attention::flash_1}};
  return words;
}

const Words<KernelChoice::Gelu>& gelu_words() {
  using Gelu = KernelChoice::Gelu;
  static const Words<Gelu> words{
      {"fused", Gelu::fused}, {"eager", Gelu::eager}, {"eager_erf", Gelu::eager_erf}};
  return words;
}

const Words<KernelChoice::UpdateRule>& optimizer_words() {
  using UpdateRule = KernelChoice::UpdateRule;
  static const Words<UpdateRule> words{{"sgd", UpdateRule::sgd},
                                       {"momentum", UpdateRule::momentum},
                                       {"adam", UpdateRule::adam},
                                       {"adamw", UpdateRule::adamw}};
  return words;
}

const Words<KernelChoice::Update>& update_words() {
  using Update = KernelChoice::Update;
  static const Words<Update> words{
      {"foreach", Update::foreach}, {"for_loop", Update::for_loop}, {"fused", Update::fused}};
  return words;
}

const Words<KernelChoice::Layout>& layout_words() {
  using Layout = KernelChoice::Layout;
  static const Words<Layout> words{{"nchw", Layout::nchw}, {"nhwc", Layout::nhwc}};
  return words;
}

const Words<KernelChoice::CrossEntropy>& cross_entropy_words() {
  using CrossEntropy = KernelChoice::CrossEntropy;
  static const Words<CrossEntropy> words{{"log_softmax", CrossEntropy::log_softmax},
                                         {"vocab_parallel", CrossEntropy::vocab_parallel},
                                         {"fused", CrossEntropy::fused}};
  return words;
}

const Words<KernelChoice::Elementwise>& elementwise_words() {
  using Elementwise = KernelChoice::Elementwise;
  static const Words<Elementwise> words{{"eager", Elementwise::eager}, {"fused", Elementwise::fused}};
  return words;
}

const Words<KernelChoice::GradientSums>& gradient_sums_words() {
  using GradientSums = KernelChoice::GradientSums;
  static const Words<GradientSums> words{{"separate", GradientSums::separate},
                                         {"fused", GradientSums::fused}};
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
  const auto add = [&](const char* key, auto KernelChoice::*member, const auto& words) {
    if (choice.*member != usual.*member) result.push_back({key, words.of(choice.*member)});
  };
  add("precision", &KernelChoice::precision, precision_words());
  add("attention", &KernelChoice::attention, attention_words());
  add("gelu", &KernelChoice::gelu, gelu_words());
  add("optimizer", &KernelChoice::optimizer, optimizer_words());
  add("update", &KernelChoice::update, update_words());
  add("layout", &KernelChoice::layout, layout_words());
  add("cross_entropy", &KernelChoice::cross_entropy, cross_entropy_words());
  add("elementwise", &KernelChoice::elementwise, elementwise_words());
  add("gradient_sums", &KernelChoice::gradient_sums, gradient_sums_words());
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

namespace {

const Fields<KernelChoice>& kernel_choice_fields() {
  static const Fields<KernelChoice> fields{
      field("precision", &KernelChoice::precision, choice(precision_words()),
            "precision of products; the device file lists those that it has; `fp8`: of dense layers in "
            "blocks and "
            "of experts, with bf16 elsewhere"),
      field("attention", &KernelChoice::attention, choice(attention_words()),
            "`eager`: a kernel for each operation; `fused_softmax`: one kernel for scale, mask and softmax; "
            "`flash`: one kernel, which keeps the scores on the chip; `flash_1`: its first version, of 2022"),
      field("gelu", &KernelChoice::gelu, choice(gelu_words()),
            "`fused`: GELU in one kernel; `eager`: its tanh form with a kernel for each operation; "
            "`eager_erf`: "
            "its "
            "exact form, likewise"),
      field("optimizer", &KernelChoice::optimizer, choice(optimizer_words()),
            "optimizer whose update is counted"),
      field("update", &KernelChoice::update, choice(update_words()),
            "`foreach`: a kernel for each operation of the optimizer; `for_loop`: for each operation and "
            "tensor; "
            "`fused`: for all operations"),
      field("layout", &KernelChoice::layout, choice(layout_words()),
            "layout of activations; kernels of tensor cores copy activations with `nchw` to another layout"),
      field("cross_entropy", &KernelChoice::cross_entropy, choice(cross_entropy_words()),
            "`log_softmax`: PyTorch's `cross_entropy`; `vocab_parallel`: Megatron-LM's, a kernel for each "
            "operation on fp32 "
            "logits; `fused`: one kernel, which writes the derivative over the logits"),
      field("elementwise", &KernelChoice::elementwise, choice(elementwise_words()),
            "`eager`: RMS norm (in fp32), SwiGLU and rotations have a kernel for each operation; `fused`: "
            "one, as "
            "of Transformer Engine or `torch.compile`, and norm and SwiGLU save only their input; fp8: the "
            "kernel before a cast finds the greatest magnitude, and the cast writes both layouts"),
      field("gradient_sums", &KernelChoice::gradient_sums, choice(gradient_sums_words()),
            "`fused`: products add gradients of weights of 2 bytes to fp32 ones, as in Transformer Engine"),
      field("autocast", &KernelChoice::autocast, boolean(),
            "with f16 and bf16: whether PyTorch's autocast keeps weights, norms and losses in fp32 and casts "
            "what "
            "products read; otherwise all tensors have 2 bytes an element")};
  return fields;
}

}  // namespace

const Keys& kernel_choice_keys() {
  return kernel_choice_fields().keys();
}

KernelChoice read_kernel_choice(const YamlValue& value) {
  KernelChoice choice;
  read_mapping(value, kernel_choice_fields(), choice);
  return choice;
}

}  // namespace stepcast
