#include "models/hugging_face/network_text.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/text.hpp"
#include "core/yaml.hpp"

namespace stepcast {

namespace {

using Family = HuggingFaceFamily;
using Blocks = Family::Blocks;
using Head = HuggingFaceConfig::Head;

constexpr std::int64_t kMostHeadRows = 1'000'000'000;  // of a reshaped layer, as in network files

const char* bias(bool has_bias) {
  return has_bias ? "" : ", bias: false";
}

/// The key `inputs` of a layer that does not read the layer above.
std::string reads(std::string_view input) {
  return input.empty() ? "" : fmt::format(", inputs: [{}]", input);
}

const char* norm_kind(const HuggingFaceConfig& config) {
  if (config.family.norm == Family::Norm::plain_layer) return "layer_norm, affine: false";
  return config.family.norm == Family::Norm::rms ? "rms_norm" : "layer_norm";
}

std::string layer_scale(const HuggingFaceConfig& config, const char* name) {
  return config.family.layer_scale ? fmt::format("{}- {{name: {}_scale, kind: scale}}\n", kInBlock, name)
                                   : "";
}

std::string norm(const HuggingFaceConfig& config, std::string_view name, std::string_view input = "") {
  return fmt::format("{}- {{name: {}, kind: {}{}}}\n", kInBlock, name, norm_kind(config), reads(input));
}

/// The last layer of what a block adds.
std::string added(const HuggingFaceConfig& config, const char* name) {
  if (config.family.layer_scale) return fmt::format("{}_scale", name);
  return fmt::format("{}{}", name, config.block_dropout > 0 ? "_dropout" : "");
}

std::string added_hidden(const HuggingFaceConfig& config) {
  if (config.experts == 0) return added(config, "contract");
  return std::string("experts") + (config.shared_hidden > 0 ? ", shared_contract" : "") +
         (config.family.shared_expert ? ", shared_gates" : "");
}

/// Queries, keys or values of heads as rows of one head each, normalised if the family does so.
std::string head_rows(const HuggingFaceConfig& config, std::string_view name, std::string_view input,
                      std::int64_t heads, std::int64_t tokens) {
  const bool values = name == "values";
  const bool all = !values && config.family.query_norm == Family::QueryNorm::all;
  const bool each = !values && config.family.query_norm == Family::QueryNorm::head;
  return fmt::format("      - {{name: {}, kind: dense, units: {}{}{}}}\n", name, heads * config.head_size,
                     bias(config.family.biases.qkv), reads(input)) +
         (all ? fmt::format("      - {{name: {}_norm, kind: rms_norm}}\n", name) : "") +
         fmt::format("      - {{name: {}_rows, kind: reshape, shape: [{}, {}]}}\n", name, tokens * heads,
                     config.head_size) +
         (each ? fmt::format("      - {{name: {}_norm, kind: rms_norm}}\n", name) : "");
}

/// Queries, keys and values side by side. Where a norm reads queries and keys alone, they are joined by a
/// copy.
std::string queries_keys_values(const HuggingFaceConfig& config, std::string_view input,
                                std::int64_t tokens) {
  const std::int64_t features = (config.heads + 2 * config.kv_heads) * config.head_size;
  if (config.family.query_norm == Family::QueryNorm::none)
    return fmt::format("      - {{name: qkv, kind: dense, units: {}{}}}\n", features,
                       bias(config.family.biases.qkv));
  if (tokens > kMostHeadRows / config.heads)
    throw InputError(fmt::format("--sequence: expected at most {} tokens for {} heads",
                                 kMostHeadRows / config.heads, config.heads));
  const char* rows = config.family.query_norm == Family::QueryNorm::head ? "norm" : "rows";
  return head_rows(config, "queries", input, config.heads, tokens) +
         head_rows(config, "keys", input, config.kv_heads, tokens) +
         head_rows(config, "values", input, config.kv_heads, tokens) +
         fmt::format(
             "      - {{name: qkv_rows, kind: concatenate, inputs: [queries_{0}, keys_{0}, values_rows]}}\n"
             "      - {{name: qkv, kind: reshape, shape: [{1}, {2}]}}\n",
             rows, tokens, features);
}

/// Attention with its projections: from the features of tokens to the features that are added to them.
/// @param input  the layer that it reads
std::string attention_layers(const HuggingFaceConfig& config, std::string_view input, std::int64_t tokens) {
  if (config.family.latent) return latent_attention(config, input);
  const bool grouped = config.kv_heads < config.heads;
  const bool rotary = config.reads_tokens() && config.family.positions == Family::Positions::rotary;
  const bool causal = config.family.kind == Family::Kind::decoder;
  const std::string heads = fmt::format("heads: {}", config.heads) +
                            (grouped ? fmt::format(", kv_heads: {}", config.kv_heads) : "");
  std::string text = queries_keys_values(config, input, tokens);
  if (rotary) text += fmt::format("      - {{name: rotary, kind: rotary_embedding, {}}}\n", heads);
  text += fmt::format(
      "      - {{name: attention, kind: attention, {}{}{}}}\n", heads, causal ? ", causal: true" : "",
      config.attention_dropout > 0 ? fmt::format(", dropout: {:.6g}", config.attention_dropout) : "");
  return text +
         fmt::format("      - {{name: projection, kind: dense, units: {}{}}}\n", config.width,
                     bias(config.family.biases.projection)) +
         dropout_line(kInBlock, "projection", config.block_dropout) + layer_scale(config, "projection");
}

/// The experts that each token visits, side by side. The factor of a gate is added here, which costs as much.
std::string shared_experts(const HuggingFaceConfig& config) {
  if (config.shared_hidden == 0) return "";
  std::string text = fmt::format(
      "      - {{name: shared_expand, kind: dense, units: {}, bias: false, inputs: [norm2]}}\n"
      "      - {{name: shared_swiglu, kind: swiglu}}\n"
      "      - {{name: shared_contract, kind: dense, units: {}, bias: false}}\n",
      2 * config.shared_hidden, config.width);
  if (!config.family.shared_expert) return text;
  return text + fmt::format(
                    "      - {{name: shared_gate, kind: dense, units: 1, bias: false, inputs: [norm2]}}\n"
                    "      - {{name: shared_sigmoid, kind: sigmoid}}\n"
                    "      - {{name: shared_gates, kind: up_sample, factor: {}}}\n",
                    config.width);
}

/// The hidden layers of a block, the last one called `contract`; or its experts.
/// @param input  the layer that they read; empty: the one above
std::string hidden_layers(const HuggingFaceConfig& config, std::string_view input = "") {
  if (config.experts > 0)
    return fmt::format("      - {{name: experts, kind: experts, experts: {}, top: {}, hidden: {}{}}}\n",
                       config.experts, config.top, config.hidden, reads(input)) +
           shared_experts(config);
  const bool has_bias = config.family.biases.hidden;
  return fmt::format(
             "      - {{name: expand, kind: dense, units: {}{}{}}}\n"
             "      - {{name: {}, kind: {}}}\n"
             "      - {{name: contract, kind: dense, units: {}{}}}\n",
             (config.family.gated ? 2 : 1) * config.hidden, bias(has_bias), reads(input), config.activation,
             config.activation, config.width, bias(has_bias)) +
         dropout_line(kInBlock, "contract", config.block_dropout) + layer_scale(config, "contract");
}

std::string add(std::string_view name, std::string_view inputs) {
  return fmt::format("      - {{name: {}, kind: add, inputs: [{}]}}\n", name, inputs);
}

std::string block_layers(const HuggingFaceConfig& config, std::int64_t tokens) {
  if (config.family.kind == Family::Kind::state_space) return state_space_layers(config);
  const std::string projection = added(config, "projection"), hidden = added_hidden(config);
  switch (config.family.blocks) {
    case Blocks::before:
      return norm(config, "norm1") + attention_layers(config, "norm1", tokens) +
             add("add1", projection + ", previous") + norm(config, "norm2") + hidden_layers(config) +
             add("add2", hidden + ", add1");
    case Blocks::after_sum:
      return attention_layers(config, "previous", tokens) + add("add1", projection + ", previous") +
             norm(config, "norm1") + hidden_layers(config) + add("add2", hidden + ", norm1") +
             norm(config, "norm2");
    case Blocks::both_sides:
      return norm(config, "norm1") + attention_layers(config, "norm1", tokens) + norm(config, "norm1_out") +
             add("add1", "norm1_out, previous") + norm(config, "norm2") + hidden_layers(config) +
             norm(config, "norm2_out") + add("add2", "norm2_out, add1");
    case Blocks::after:
      return attention_layers(config, "previous", tokens) + norm(config, "norm1") +
             add("add1", "norm1, previous") + hidden_layers(config) + norm(config, "norm2") +
             add("add2", "norm2, add1");
    case Blocks::parallel:
      return norm(config, "norm1") + attention_layers(config, "norm1", tokens) +
             hidden_layers(config, "norm1") + add("add1", hidden + ", " + projection + ", previous");
    case Blocks::parallel_two:
      break;
  }
  return norm(config, "norm1") + attention_layers(config, "norm1", tokens) +
         norm(config, "norm2", "previous") + hidden_layers(config) +
         add("add1", hidden + ", " + projection + ", previous");
}

std::string blocks(const HuggingFaceConfig& config, std::int64_t tokens) {
  const bool ends_with_norm = config.family.blocks == Blocks::after_sum;
  std::string text;
  if (config.first_dense > 0) {
    HuggingFaceConfig dense = config;
    dense.experts = 0;
    dense.hidden = config.dense_hidden;
    text = repeated_lines(config.first_dense, "dense_block", block_layers(dense, tokens));
  }
  if (config.layers > config.first_dense)
    text += repeated_lines(config.layers - config.first_dense, "block", block_layers(config, tokens));
  return text +
         (ends_with_norm ? "" : fmt::format("  - {{name: final_norm, kind: {}}}\n", norm_kind(config)));
}

std::string position_table(std::int64_t rows) {
  return fmt::format("  - {{name: positions, kind: position_embedding, rows: {}}}\n", rows);
}

std::string vocabulary_layer(const HuggingFaceConfig& config) {
  return fmt::format("  - {{name: vocabulary, kind: dense, units: {}{}{}}}\n", config.vocabulary,
                     bias(config.family.biases.vocabulary), config.tied ? ", weight_of: tokens" : "");
}

constexpr const char* kLoss = "  - {name: loss, kind: softmax_cross_entropy}\n";

std::string class_layer(const HuggingFaceConfig& config, bool has_bias) {
  return fmt::format("  - {{name: classes, kind: dense, units: {}{}}}\n", config.classes, bias(has_bias)) +
         kLoss;
}

std::string embedding_layers(const HuggingFaceConfig& config) {
  const Family& family = config.family;
  std::string text = fmt::format("  - {{name: tokens, kind: embedding, rows: {}, columns: {}}}\n",
                                 config.vocabulary, config.embedding_width);
  if (config.token_types > 0)
    text += fmt::format(
        "  - {{name: token_types, kind: embedding, inputs: [input], rows: {}, columns: {}}}\n"
        "  - {{name: typed_tokens, kind: add, inputs: [tokens, token_types]}}\n",
        config.token_types, config.embedding_width);
  if (family.positions == Family::Positions::table)
    text += position_table(config.positions + family.position_offset + family.reserved_positions);
  if (family.kind == Family::Kind::encoder || family.model_type == "bloom")
    text += "  - {name: embedding_norm, kind: layer_norm}\n";
  text += dropout_line("  ", "embedding", config.embedding_dropout);
  if (config.embedding_width == config.width) return text;
  return text + fmt::format("  - {{name: wide_tokens, kind: dense, units: {}}}\n", config.width);
}

std::string decoder_head(const HuggingFaceConfig& config) {
  if (config.head == Head::language) return vocabulary_layer(config) + kLoss;
  if (config.head == Head::tokens) return class_layer(config, true);
  // The class is read at the last token, which costs as much as the first one.
  return "  - {name: class, kind: first_token}\n" + class_layer(config, false);
}

/// True if the first of two sentences precedes the second.
constexpr const char* kNextSentence =
    "  - {name: next_sentence, kind: dense, units: 2}\n"
    "  - {name: next_sentence_loss, kind: softmax_cross_entropy}\n";

std::string encoder_head(const HuggingFaceConfig& config) {
  if (config.head == Head::tokens) return class_layer(config, true);
  std::string text;
  if (config.head == Head::discriminator)
    return fmt::format(
        "  - {{name: replaced, kind: dense, units: {}}}\n"
        "  - {{name: replaced_{}, kind: {}}}\n"
        "  - {{name: logits, kind: dense, units: 1}}\n"
        "  - {{name: loss, kind: sigmoid_cross_entropy}}\n",
        config.width, config.activation, config.activation);
  if (config.head != Head::masked) {
    const char* activation = config.family.model_type == "distilbert" ? "relu" : "tanh";
    text = fmt::format(
        "  - {{name: class, kind: first_token}}\n"
        "  - {{name: pooler, kind: dense, units: {}}}\n"
        "  - {{name: pooler_{}, kind: {}}}\n",
        config.width, activation, activation);
  }
  if (config.head == Head::sample) return text + class_layer(config, true);
  if (config.head == Head::pretraining) text += kNextSentence;
  return text +
         fmt::format(
             "  - {{name: masked, kind: dense, inputs: [block{}_norm2], units: {}}}\n"
             "  - {{name: masked_{}, kind: {}}}\n"
             "  - {{name: masked_norm, kind: layer_norm}}\n",
             config.layers - 1, config.embedding_width, config.activation, config.activation) +
         vocabulary_layer(config) + kLoss;
}

/// DINOv2 reads classes from the class token and the mean of the others, side by side.
std::string mean_of_patches(const HuggingFaceConfig& config, std::int64_t side) {
  return fmt::format(
      "  - {{name: patches_out, kind: slice, first: 1, count: {0}, inputs: [final_norm]}}\n"
      "  - {{name: map_out, kind: reshape, shape: [{1}, {2}, {2}]}}\n"
      "  - {{name: mean, kind: average_pool, kernel: {2}}}\n"
      "  - {{name: patch_out, kind: reshape, shape: [{1}]}}\n"
      "  - {{name: features, kind: concatenate, inputs: [class_out, patch_out]}}\n",
      side * side, config.width, side);
}

std::string image_layers(const HuggingFaceConfig& config) {
  const std::int64_t side = config.image / config.patch, tokens = side * side;
  return fmt::format(
             "  - {{name: patches, kind: convolution, filters: {}, kernel: {}, stride: {}}}\n"
             "  - {{name: sequence, kind: reshape, shape: [{}, {}]}}\n"
             "  - {{name: class, kind: class_token{}}}\n",
             config.width, config.patch, config.patch, tokens, config.width,
             config.mask_token ? ", unused: 1" : "") +
         position_table(tokens + 1) + dropout_line("  ", "embedding", config.embedding_dropout) +
         blocks(config, tokens + 1) + "  - {name: class_out, kind: first_token}\n" +
         (config.family.layer_scale ? mean_of_patches(config, side) : "") + class_layer(config, true);
}

/// "keys that are not read: A, B", the first ten of them; empty without any.
std::string unread_text(const HuggingFaceConfig& config) {
  constexpr std::size_t kNamed = 10, kLongestKey = 60;
  if (config.unread.empty()) return "";
  std::string text = "keys that are not read: ";
  for (std::size_t i = 0; i < std::min(kNamed, config.unread.size()); ++i)
    text += (i == 0 ? "" : ", ") + printable(config.unread[i].substr(0, kLongestKey));
  const std::size_t more = config.unread.size() - std::min(kNamed, config.unread.size());
  return more == 0 ? text : text + fmt::format(" and {} more", more);
}

/// Where the network comes from, and what of it the file leaves out.
std::string source_of(const HuggingFaceConfig& config, std::int64_t sequence) {
  const bool drops = config.attention_dropout + config.block_dropout + config.embedding_dropout > 0;
  std::string text = fmt::format("config.json of {}, model_type {} (Hugging Face){}",
                                 config.origin.empty() ? "a network" : config.origin,
                                 config.family.model_type, drops ? "" : "; without dropout");
  if (config.attention_window > 0 && config.attention_window < sequence)
    text += fmt::format("; the sliding window of {} tokens is not modelled", config.attention_window);
  if (config.gelu_gate)
    text += "; gates of GELU count as SwiGLU; capped logits and scales of embeddings are not modelled";
  if (config.family.positions == Family::Positions::biases)
    text += "; biases of attention (ALiBi) are not modelled";
  if (config.family.query_norm != Family::QueryNorm::none)
    text += "; queries and keys are normalised and then joined by a copy";
  if (config.family.shared_expert) text += "; the gate of the shared expert is added in place of multiplied";
  if (config.clipped) text += "; queries, keys and values are not clipped";
  if (config.stochastic_depth) text += "; without stochastic depth";
  if (config.window > 0) text += "; copies that shift and cut windows are written as up_sample by 1";
  if (!config.stages.empty() && config.window == 0)
    text += "; copies that norms make of maps with channels first are not modelled";
  if (config.unbuilt_layers > 0) text += "; without its layers of multi-token prediction";
  return text + (config.unread.empty() ? "" : "; " + unread_text(config));
}

std::string header(const std::string& name, const std::string& source, const std::string& sample,
                   const std::string& input) {
  return fmt::format("name: {}\nsource: {}\nsample: {}\ninput: {}\nlayers:\n", yaml_quoted(name),
                     yaml_quoted(source), sample, input);
}

}  // namespace

std::string network_text(const HuggingFaceConfig& config, const std::string& name, std::int64_t sequence) {
  if (!config.reads_tokens()) {
    return header(name, source_of(config, 0), fmt::format("image {} x {}", config.image, config.image),
                  fmt::format("[{}, {}, {}]", config.channels, config.image, config.image)) +
           (config.stages.empty() ? image_layers(config)
                                  : image_stage_layers(config) + class_layer(config, true));
  }
  const std::int64_t tokens = sequence > 0 ? sequence : config.positions;
  if (tokens == 0)
    throw InputError("--sequence: required, as the configuration does not say the most tokens of a sample");
  const bool limited = config.family.positions == Family::Positions::table || config.decoder.sound_tokens > 0;
  if (limited && tokens > config.positions) {
    throw InputError(fmt::format("--sequence: expected at most the {} positions of the network, got {}",
                                 config.positions, tokens));
  }
  if (config.decoder.layers > 0) {
    const std::int64_t sound = config.decoder.sound_tokens;
    return header(name, source_of(config, tokens),
                  sound > 0 ? fmt::format("sound of {} tokens with {} words", sound, tokens)
                            : fmt::format("pair of sequences of {} tokens", tokens),
                  encoder_decoder_input(config, tokens)) +
           encoder_decoder_layers(config, tokens) + vocabulary_layer(config) + kLoss;
  }
  return header(name, source_of(config, tokens), fmt::format("sequence of {} tokens", tokens),
                fmt::format("[{}]", tokens)) +
         embedding_layers(config) + blocks(config, tokens) +
         (config.family.kind == Family::Kind::encoder ? encoder_head(config) : decoder_head(config));
}

std::string dropout_line(std::string_view indent, std::string_view name, double rate) {
  if (!(rate > 0)) return "";
  return fmt::format("{}- {{name: {}_dropout, kind: dropout, rate: {:.6g}}}\n", indent, name, rate);
}

std::string repeated_lines(std::int64_t times, std::string_view name, const std::string& layers) {
  return times == 0 ? "" : fmt::format("  - repeat: {}\n    name: {}\n    layers:\n{}", times, name, layers);
}

}  // namespace stepcast
