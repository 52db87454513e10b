#include "models/pytorch_profile/operators.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <numeric>
#include <string_view>
#include <unordered_map>

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
                    std::all_of(name.begin() + backward + 8, name.end(),
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

bool prepares_input(const std::string& word) {
  constexpr std::array<std::string_view, 11> kWords{"to",       "tocopy", "copy",      "ones",
                                                    "full",     "fill",   "zeroslike", "oneslike",
                                                    "fulllike", "onehot", "newzeros"};
  return std::find(kWords.begin(), kWords.end(), word) != kWords.end();
}

bool begins_layer(LayerKind layer, std::string_view operator_kind) {
  if (operator_kind == to_string(layer)) return true;
  switch (layer) {
    case LayerKind::dense:
      return operator_kind == "product";
    case LayerKind::attention:
    case LayerKind::gelu:
      return one_of(operator_kind, {"product", "other", "tanh", "view"});
    case LayerKind::position_embedding:  // rows of a table, or a parameter, and their addition
      return one_of(operator_kind, {"embedding", "add"});
    case LayerKind::class_token:
      return one_of(operator_kind, {"other", "view"});
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
    case LayerKind::position_embedding:
      return operator_kind == "add";
    case LayerKind::class_token:
      return operator_kind == "other";
    default:
      return false;
  }
}

namespace {

/// Precision by the name of a matrix product of cuBLAS for Hopper and later, such as
/// "nvjet_sm90_tst_192x192_64x3_...": its letters are the types of inputs, sum and output, t for bf16
/// (profiles of an H200), h for fp16.
std::string nvjet_precision(std::string_view kernel) {
  std::size_t at = kernel.find("nvjet_") + 6;
  if (kernel.substr(at).starts_with("sm")) at = kernel.find('_', at) + 1;
  const char first = at < kernel.size() ? kernel[at] : ' ';
  return first == 't' ? "bf16" : first == 'h' ? "f16" : "";
}

}  // namespace

std::string kernel_precision(std::string_view kernel) {
  // Matrix products of rocBLAS and hipBLASLt: "Cijk_Ailk_Bljk_BBS_BH_..." names the types of inputs and
  // output.
  if (has(kernel, "Cijk_")) {
    const bool half = has(kernel, "_HH") || has(kernel, "_HB_"),
               brain = has(kernel, "_BB") || has(kernel, "_BSS");
    return brain ? "bf16" : half ? "f16" : has(kernel, "_S") ? "f32" : "";
  }
  if (has(kernel, "nvjet_")) return nvjet_precision(kernel);
  if (has(kernel, "tf32") || has(kernel, "_f32f32_f32f32_tn_n_tilesize")) return "tf32";
  if (has(kernel, "bf16") || has(kernel, "s16816gemm_bf") || has(kernel, "BFloat16")) return "bf16";
  if (has(kernel, "h884") || has(kernel, "s884") || has(kernel, "h1688") || has(kernel, "s16816") ||
      has(kernel, "h16816") || has(kernel, "hgemm") || has(kernel, "fp16") || has(kernel, "f16f16") ||
      has(kernel, "hcudnn") || has(kernel, "__half"))
    return "f16";
  if (has(kernel, "s1688")) return "tf32";  // of other precisions, the name says which
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

namespace {

constexpr std::int64_t kLargestWindow = 1'000'000;  // of a filter, as in network files

bool is_addmm(const NetworkOperator& one) {
  return one.kind == "dense" && one.name.find("addmm") != std::string::npos;
}

/// Stride and padding with which a window of `kernel` makes `to` positions of `from`; the smallest.
bool find_step(std::int64_t from, std::int64_t kernel, std::int64_t to, std::int64_t& stride,
               std::int64_t& pad) {
  for (stride = std::max<std::int64_t>(1, from / std::max<std::int64_t>(1, to) - 1); stride <= from;
       ++stride) {
    for (pad = 0; pad < kernel && pad <= from; ++pad) {
      const std::int64_t free = from + 2 * pad - kernel;
      if (free >= 0 && free / stride + 1 == to) return true;
      if (free >= 0 && free / stride + 1 > to) break;
    }
    if ((from - kernel) / stride + 1 < to && (from + kernel) / stride + 1 < to) return false;
  }
  return false;
}

std::optional<OperatorLayer> convolution(const NetworkOperator& one, const Shape& in, const Shape& out,
                                         Layer& layer) {
  if (one.shapes.size() < 2 || in.size() < 2 || in.size() > 4 || out.size() != in.size()) return {};
  const Shape& weight = one.shapes[1];
  if (weight.size() != in.size() + 1 || weight[0] != out[0] || weight[1] < 1 || in[0] % weight[1] != 0)
    return {};
  layer.groups = in[0] / weight[1];
  if (weight[0] % layer.groups != 0) return {};
  for (std::size_t i = 1; i < in.size(); ++i) {
    if (std::max({in[i], out[i], weight[i + 1]}) > kLargestWindow) return {};
    std::int64_t stride = 1, pad = 0;
    if (weight[i + 1] < 1 || !find_step(in[i], weight[i + 1], out[i], stride, pad)) return {};
    layer.window.kernel.push_back(weight[i + 1]);
    layer.window.stride.push_back(stride);
    layer.window.pad_before.push_back(pad);
    layer.window.pad_after.push_back(pad);
  }
  const bool bias = one.parameters.size() > 1;
  complete_convolution(weight[0], bias, layer);
  const Window& window = layer.window;
  return OperatorLayer{
      layer.kind,
      fmt::format("kind: convolution, filters: {}, kernel: [{}], stride: [{}], pad: [{}], bias: {}{}",
                  weight[0], fmt::join(window.kernel, ", "), fmt::join(window.stride, ", "),
                  fmt::join(window.pad_before, ", "), bias,
                  layer.groups > 1 ? fmt::format(", groups: {}", layer.groups) : ""),
      layer.output, true};
}

std::optional<OperatorLayer> dense(const NetworkOperator& one, const Shape& in, Layer& layer) {
  const std::size_t place = is_addmm(one) ? 2 : 1;
  if (one.shapes.size() <= place || one.shapes[place].size() != 2 || in.size() > 2) return {};
  const Shape& weight = one.shapes[place];
  const std::int64_t units = is_addmm(one) ? weight[1] : weight[0];
  if ((is_addmm(one) ? weight[0] : weight[1]) != in.back() || units < 1 || units > 1'000'000'000) return {};
  const bool bias = one.parameters.size() > 1;
  complete_dense(units, bias, layer);
  return OperatorLayer{layer.kind, fmt::format("kind: dense, units: {}, bias: {}", units, bias), layer.output,
                       true};
}

std::optional<OperatorLayer> embedding(const NetworkOperator& one, const Shape& in, Layer& layer) {
  if (one.shapes.size() < 2 || one.shapes[0].size() != 2 || in.size() != 1) return {};
  const std::int64_t rows = one.shapes[0][0], columns = one.shapes[0][1];
  if (std::min(rows, columns) < 1 || std::max(rows, columns) > 1'000'000'000) return {};
  layer.output = {in.front(), columns};
  layer.parameters = {{"weight", {rows, columns}}};
  return OperatorLayer{layer.kind, fmt::format("kind: embedding, rows: {}, columns: {}", rows, columns),
                       layer.output, true};
}

/// An average over all positions.
std::optional<OperatorLayer> average(const Shape& in, const Shape& out, Layer& layer) {
  if (in.size() < 2 || in.size() > 4 || elements(out) != in.front()) return {};
  layer.output = Shape(in.size(), 1);
  layer.output.front() = in.front();
  const Shape kernel(in.begin() + 1, in.end());
  if (std::ranges::max(kernel) > kLargestWindow) return {};
  return OperatorLayer{layer.kind, fmt::format("kind: average_pool, kernel: [{}]", fmt::join(kernel, ", ")),
                       layer.output, true};
}

/// Kinds without keys.
std::optional<OperatorLayer> plain(const Shape& in, Layer& layer) {
  layer.output = is_loss(layer.kind) ? Shape{1} : in;
  if (layer.kind == LayerKind::batch_norm) complete_batch_norm(layer);
  if (layer.kind == LayerKind::layer_norm) complete_layer_norm(layer);
  if (layer.kind == LayerKind::rms_norm) complete_rms_norm(layer);
  return OperatorLayer{layer.kind, fmt::format("kind: {}", to_string(layer.kind)), layer.output,
                       !is_loss(layer.kind)};
}

std::optional<OperatorLayer> layer_of(const NetworkOperator& one, const Shape& in, const Shape& out,
                                      Layer& layer) {
  const auto words = layer_kind_words();
  const auto word = std::find(words.begin(), words.end(), one.kind);
  if (word == words.end()) return {};
  layer.kind = static_cast<LayerKind>(word - words.begin());
  switch (layer.kind) {
    case LayerKind::convolution:
      return convolution(one, in, out, layer);
    case LayerKind::dense:
      return dense(one, in, layer);
    case LayerKind::embedding:
      return embedding(one, in, layer);
    case LayerKind::average_pool:
      return average(in, out, layer);
    case LayerKind::batch_norm:
    case LayerKind::layer_norm:
    case LayerKind::rms_norm:
    case LayerKind::relu:
    case LayerKind::sigmoid:
    case LayerKind::tanh:
    case LayerKind::gelu:
    case LayerKind::silu:
    case LayerKind::add:
    case LayerKind::softmax_cross_entropy:
    case LayerKind::sigmoid_cross_entropy:
    case LayerKind::mean_squared_error:
      return plain(in, layer);
    default:  // shapes do not tell the window of a pool, the rate of dropout, the cells of an LSTM
      return {};
  }
}

}  // namespace

Shape sample_shape(const Shape& recorded, std::int64_t batch) {
  const std::int64_t all = recorded_elements(recorded);
  if (recorded.empty() || all <= 0 || batch < 1 || all % batch != 0) return {1};
  if (recorded.front() % batch != 0) return {all / batch};
  Shape shape(recorded.begin() + 1, recorded.end());
  if (recorded.front() > batch) shape.insert(shape.begin(), recorded.front() / batch);
  return shape.empty() ? Shape{1} : shape;
}

Shape input_shape(const NetworkOperator& one) {
  const std::size_t place = one.kind == "embedding" || is_addmm(one) ? 1 : 0;
  if (one.shapes.size() <= place || recorded_elements(one.shapes[place]) <= 0) return {};
  return one.shapes[place];
}

std::string layer_name(const NetworkOperator& one) {
  const std::size_t space = one.name.rfind("::");
  std::string name = space == std::string::npos ? one.name : one.name.substr(space + 2);
  while (name.size() > 1 && name.back() == '_') name.pop_back();
  if (name.size() > 60) name.resize(60);
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) || c == '_' ? c : '_';
  // Other readers of YAML take these words for values.
  constexpr std::array<std::string_view, 11> kValues = {"null", "true", "false", "yes", "no", "on",
                                                        "off",  "y",    "n",     "nan", "inf"};
  std::string lower = name;
  for (char& c : lower) c = std::tolower(static_cast<unsigned char>(c));
  const bool text = !name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
                    std::find(kValues.begin(), kValues.end(), lower) == kValues.end();
  return text ? name : "op_" + name;
}

std::optional<OperatorLayer> known_layer(const NetworkOperator& one, const Shape& in, const Shape& out) {
  Layer layer;
  layer.input = in;
  auto known = layer_of(one, in, out, layer);
  if (!known) return {};
  std::int64_t trained = 0;
  for (const ParameterTensor& tensor : layer.parameters) trained += tensor.trainable ? tensor.elements() : 0;
  const std::int64_t recorded =
      std::accumulate(one.parameters.begin(), one.parameters.end(), std::int64_t{0});
  const bool same_output = one.output.empty() || elements(known->output) == elements(out);
  return trained == recorded && same_output ? known : std::nullopt;
}

}  // namespace stepcast
