#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <unordered_map>

#include "models/pytorch_profile/operators.hpp"

namespace stepcast {
namespace {

constexpr std::string_view kWrapper = "autograd::engine::evaluate_function: ";

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

const std::unordered_map<std::string_view, std::string_view>& kinds() {
  static const std::unordered_map<std::string_view, std::string_view> words = {
      {"conv1d", "convolution"},
      {"conv2d", "convolution"},
      {"conv3d", "convolution"},
      {"convolution", "convolution"},
      {"cudnnconvolution", "convolution"},
      {"mkldnnconvolution", "convolution"},
      {"batchnorm", "batch_norm"},
      {"nativebatchnorm", "batch_norm"},
      {"cudnnbatchnorm", "batch_norm"},
      {"syncbatchnorm", "batch_norm"},
      {"layernorm", "layer_norm"},
      {"nativelayernorm", "layer_norm"},
      {"relu", "relu"},
      {"leakyrelu", "leaky_relu"},
      {"sigmoid", "sigmoid"},
      {"tanh", "tanh"},
      {"elu", "elu"},
      {"gelu", "gelu"},
      {"silu", "silu"},
      {"rmsnorm", "rms_norm"},
      {"linear", "dense"},
      {"addmm", "dense"},
      {"embedding", "embedding"},
      {"dropout", "dropout"},
      {"nativedropout", "dropout"},
      {"featuredropout", "dropout"},
      {"add", "add"},
      {"lstm", "lstm"},
      {"gru", "gru"},
      {"scaleddotproductattention", "attention"},
      {"crossentropyloss", "softmax_cross_entropy"},
      {"nllloss", "softmax_cross_entropy"},
      {"nlllossnd", "softmax_cross_entropy"},
      {"binarycrossentropywithlogits", "sigmoid_cross_entropy"},
      {"mseloss", "mean_squared_error"},
      {"mean", "average_pool"},
      {"matmul", "product"},
      {"bmm", "product"},
      {"mm", "product"},
      {"baddbmm", "product"},
      {"einsum", "product"},
  };
  return words;
}

constexpr std::array<std::string_view, 27> kViews = {
    "view",      "flatten", "reshape", "permute",    "transpose", "t",           "contiguous",
    "unsqueeze", "squeeze", "expand",  "slice",      "select",    "split",       "chunk",
    "unbind",    "narrow",  "to",      "alias",      "detach",    "expandas",    "asstrided",
    "typeas",    "clone",   "viewas",  "unsafeview", "movedim",   "reshapealias"};

}  // namespace

std::string operator_word(std::string_view name) {
  if (name.starts_with(kWrapper)) name.remove_prefix(kWrapper.size());
  const std::size_t space = name.rfind("::");
  if (space != std::string_view::npos) name.remove_prefix(space + 2);
  const std::size_t backward = name.rfind("Backward");
  const bool node = backward != std::string_view::npos &&
                    std::all_of(name.begin() + static_cast<std::ptrdiff_t>(backward) + 8, name.end(),
                                [](unsigned char c) { return std::isdigit(c) || c == 's'; });
  if (node) name = name.substr(0, backward);
  std::string word;
  for (const char c : name) {
    if (c != '_') word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return word;
}

std::string operator_kind(std::string_view name) {
  const std::string word = operator_word(name);
  const auto found = kinds().find(word);
  if (found != kinds().end()) return std::string(found->second);
  if (std::find(kViews.begin(), kViews.end(), word) != kViews.end()) return "view";
  if (has(word, "maxpool")) return "max_pool";
  if (has(word, "avgpool")) return "average_pool";
  if (word.starts_with("upsample")) return "up_sample";
  if (has(word, "scaleddotproduct") || has(word, "flashattention")) return "attention";
  return "other";
}

bool begins_layer(LayerKind layer, std::string_view operator_kind) {
  if (operator_kind == to_string(layer)) return true;
  switch (layer) {
    case LayerKind::dense:
      return operator_kind == "product";
    case LayerKind::attention:
    case LayerKind::gelu:
      return one_of(operator_kind, {"product", "other", "tanh", "view"});
    case LayerKind::layer_norm:
    case LayerKind::softmax_cross_entropy:
    case LayerKind::sigmoid_cross_entropy:
    case LayerKind::mean_squared_error:
      return operator_kind == "other" || operator_kind == "average_pool" || is_loss(layer);
    case LayerKind::measured:  // one operator of any kind
      return true;
    default:
      // A kind that has no operator of its own name is written out in several.
      return false;
  }
}

bool continues_layer(LayerKind layer, std::string_view operator_kind) {
  if (operator_kind == "view" || is_loss(layer)) return true;
  switch (layer) {
    case LayerKind::attention:
      return one_of(operator_kind, {"product", "other", "attention", "dropout", "add"});
    case LayerKind::gelu:
      return one_of(operator_kind, {"other", "tanh", "add"});
    case LayerKind::dense:
      return operator_kind == "add";
    default:
      return false;
  }
}

std::string kernel_precision(std::string_view kernel) {
  if (has(kernel, "tf32") || has(kernel, "s1688") || has(kernel, "_f32f32_f32f32_tn_n_tilesize"))
    return "tf32";
  if (has(kernel, "bf16") || has(kernel, "s16816gemm_bf") || has(kernel, "BFloat16")) return "bf16";
  if (has(kernel, "h884") || has(kernel, "s884") || has(kernel, "h1688") || has(kernel, "s16816") ||
      has(kernel, "h16816") || has(kernel, "hgemm") || has(kernel, "fp16") || has(kernel, "f16f16") ||
      has(kernel, "hcudnn") || has(kernel, "__half"))
    return "f16";
  if (has(kernel, "sgemm") || has(kernel, "scudnn") || has(kernel, "gemm_fp32") || has(kernel, "<float"))
    return "f32";
  return "";
}

ConvolutionPass convolution_pass(std::string_view kernel) {
  if (has(kernel, "dgrad") || has(kernel, "Dgrad") || has(kernel, "bwd_data") || has(kernel, "backward_data"))
    return ConvolutionPass::data;
  if (has(kernel, "wgrad") || has(kernel, "Wgrad") || has(kernel, "bwd_weights") ||
      has(kernel, "backward_weights"))
    return ConvolutionPass::weights;
  return ConvolutionPass::unknown;
}

}  // namespace stepcast
