#include "models/hugging_face/network_text.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "models/layer_times/trace_text.hpp"

namespace stepcast {
namespace {

using Family = HuggingFaceConfig::Family;

const char* bias(bool has_bias) {
  return has_bias ? "" : ", bias: false";
}

/// Attention with its projections: from the features of tokens to the features that are added to them.
std::string attention_layers(const HuggingFaceConfig& config) {
  const std::int64_t features = (config.heads + 2 * config.kv_heads) * config.head;
  const bool grouped = config.kv_heads < config.heads;
  const bool rotary = config.activation == "swiglu";
  const bool causal = rotary || config.family == Family::gpt2;
  const std::string heads = fmt::format("heads: {}", config.heads) +
                            (grouped ? fmt::format(", kv_heads: {}", config.kv_heads) : "");
  std::string text =
      fmt::format("      - {{name: qkv, kind: dense, units: {}{}}}\n", features, bias(config.attention_bias));
  if (rotary) text += fmt::format("      - {{name: rotary, kind: rotary_embedding, {}}}\n", heads);
  text += fmt::format("      - {{name: attention, kind: attention, {}{}}}\n", heads,
                      causal ? ", causal: true" : "");
  // Without a bias of queries, keys and values, ViT still has one here.
  const bool projection_bias = config.family == Family::vit || config.attention_bias;
  return text + fmt::format("      - {{name: projection, kind: dense, units: {}{}}}\n", config.width,
                            bias(projection_bias));
}

/// The hidden layers of a block, the last one called `contract`; or its experts.
std::string hidden_layers(const HuggingFaceConfig& config) {
  if (config.experts > 0) {
    return fmt::format("      - {{name: experts, kind: experts, experts: {}, top: {}, hidden: {}}}\n",
                       config.experts, config.top, config.hidden);
  }
  const bool gated = config.activation == "swiglu";
  return fmt::format(
      "      - {{name: expand, kind: dense, units: {}{}}}\n"
      "      - {{name: {}, kind: {}}}\n"
      "      - {{name: contract, kind: dense, units: {}{}}}\n",
      (gated ? 2 : 1) * config.hidden, bias(config.hidden_bias), config.activation, config.activation,
      config.width, bias(config.hidden_bias));
}

/// Blocks that normalise before attention and before the hidden layers.
std::string pre_norm_blocks(const HuggingFaceConfig& config) {
  const char* norm = config.activation == "swiglu" ? "rms_norm" : "layer_norm";
  return fmt::format(
      "  - repeat: {}\n"
      "    name: block\n"
      "    layers:\n"
      "      - {{name: norm1, kind: {}}}\n"
      "{}"
      "      - {{name: add1, kind: add, inputs: [projection, previous]}}\n"
      "      - {{name: norm2, kind: {}}}\n"
      "{}"
      "      - {{name: add2, kind: add, inputs: [{}, add1]}}\n"
      "  - {{name: final_norm, kind: {}}}\n",
      config.layers, norm, attention_layers(config), norm, hidden_layers(config),
      config.experts > 0 ? "experts" : "contract", norm);
}

/// Blocks that normalise after both additions, as in BERT.
std::string post_norm_blocks(const HuggingFaceConfig& config) {
  return fmt::format(
      "  - repeat: {}\n"
      "    name: block\n"
      "    layers:\n"
      "{}"
      "      - {{name: add1, kind: add, inputs: [projection, previous]}}\n"
      "      - {{name: norm1, kind: layer_norm}}\n"
      "{}"
      "      - {{name: add2, kind: add, inputs: [contract, norm1]}}\n"
      "      - {{name: norm2, kind: layer_norm}}\n",
      config.layers, attention_layers(config), hidden_layers(config));
}

std::string word_table(const HuggingFaceConfig& config) {
  return fmt::format("  - {{name: tokens, kind: embedding, rows: {}, columns: {}}}\n", config.vocabulary,
                     config.width);
}

std::string position_table(std::int64_t rows) {
  return fmt::format("  - {{name: positions, kind: position_embedding, rows: {}}}\n", rows);
}

std::string vocabulary_layer(const HuggingFaceConfig& config, bool has_bias) {
  return fmt::format("  - {{name: vocabulary, kind: dense, units: {}{}{}}}\n", config.vocabulary,
                     bias(has_bias), config.tied ? ", weight_of: tokens" : "");
}

constexpr const char* kLoss = "  - {name: loss, kind: softmax_cross_entropy}\n";

/// GPT-2, and Llama with its relatives.
std::string decoder_layers(const HuggingFaceConfig& config) {
  const bool table = config.family == Family::gpt2;
  return word_table(config) + (table ? position_table(config.positions) : "") + pre_norm_blocks(config) +
         vocabulary_layer(config, false) + kLoss;
}

/// True if the first of two sentences precedes the second.
constexpr const char* kNextSentence =
    "  - {name: next_sentence, kind: dense, units: 2}\n"
    "  - {name: next_sentence_loss, kind: softmax_cross_entropy}\n";

std::string bert_layers(const HuggingFaceConfig& config) {
  std::string text =
      word_table(config) +
      fmt::format("  - {{name: token_types, kind: embedding, inputs: [input], rows: {}, columns: {}}}\n",
                  config.token_types, config.width) +
      "  - {name: typed_tokens, kind: add, inputs: [tokens, token_types]}\n" +
      position_table(config.positions) + "  - {name: embedding_norm, kind: layer_norm}\n" +
      post_norm_blocks(config);
  if (!config.masked_only) {
    text += fmt::format(
        "  - {{name: class, kind: first_token}}\n"
        "  - {{name: pooler, kind: dense, units: {}}}\n"
        "  - {{name: pooler_tanh, kind: tanh}}\n"
        "{}",
        config.width, kNextSentence);
  }
  return text +
         fmt::format(
             "  - {{name: masked, kind: dense, inputs: [block{}_norm2], units: {}}}\n"
             "  - {{name: masked_{}, kind: {}}}\n"
             "  - {{name: masked_norm, kind: layer_norm}}\n",
             config.layers - 1, config.width, config.activation, config.activation) +
         vocabulary_layer(config, true) + kLoss;
}

std::string vit_layers(const HuggingFaceConfig& config) {
  const std::int64_t side = config.image / config.patch;
  return fmt::format(
             "  - {{name: patches, kind: convolution, filters: {}, kernel: {}, stride: {}}}\n"
             "  - {{name: sequence, kind: reshape, shape: [{}, {}]}}\n"
             "  - {{name: class, kind: class_token}}\n",
             config.width, config.patch, config.patch, side * side, config.width) +
         position_table(side * side + 1) + pre_norm_blocks(config) +
         fmt::format(
             "  - {{name: class_out, kind: first_token}}\n"
             "  - {{name: classes, kind: dense, units: {}}}\n",
             config.classes) +
         kLoss;
}

std::string source_of(const HuggingFaceConfig& config, std::int64_t sequence) {
  std::string text =
      fmt::format("config.json of {}, model_type {} (Hugging Face); without dropout",
                  config.origin.empty() ? "a network" : config.origin, to_string(config.family));
  if (config.attention_window > 0 && config.attention_window < sequence)
    text += fmt::format("; the sliding window of {} tokens is not modelled", config.attention_window);
  return text;
}

std::string header(const std::string& name, const std::string& source, const std::string& sample,
                   const std::string& input) {
  return fmt::format("name: {}\nsource: {}\nsample: {}\ninput: {}\nlayers:\n", quoted(name), quoted(source),
                     sample, input);
}

}  // namespace

std::string network_text(const HuggingFaceConfig& config, const std::string& name, std::int64_t sequence) {
  if (!config.reads_tokens()) {
    return header(name, source_of(config, 0), fmt::format("image {} x {}", config.image, config.image),
                  fmt::format("[{}, {}, {}]", config.channels, config.image, config.image)) +
           vit_layers(config);
  }
  const std::int64_t tokens = sequence > 0 ? sequence : config.positions;
  const bool table = config.family == Family::gpt2 || config.family == Family::bert;
  if (table && tokens > config.positions) {
    throw InputError(fmt::format("--sequence: expected at most the {} positions of the network, got {}",
                                 config.positions, tokens));
  }
  return header(name, source_of(config, tokens), fmt::format("sequence of {} tokens", tokens),
                fmt::format("[{}]", tokens)) +
         (config.family == Family::bert ? bert_layers(config) : decoder_layers(config));
}

}  // namespace stepcast
