#include <fmt/format.h>

#include "core/error.hpp"
#include "models/hugging_face/config_keys.hpp"
#include "models/hugging_face/network_text.hpp"

namespace stepcast {
namespace {

constexpr std::int64_t kMostSound = 100'000;  // tokens of a sound, and bands

/// The hidden layer of T5: `relu`, `gelu`, or one of these with a gate.
void read_hidden_layer(const ConfigMap& map, HuggingFaceConfig& config) {
  const bool old = config.family.model_type == "t5";
  const std::string word = config_word_or(map, "feed_forward_proj", old ? "relu" : "gated-gelu");
  config.family.gated = word.starts_with("gated-");
  const std::string kind = config.family.gated ? word.substr(6) : word;
  if (kind != "gelu" && kind != (config.family.gated ? "silu" : "relu"))
    map.at("feed_forward_proj").expected("relu, gelu, gated-gelu or gated-silu");
  config.gelu_gate = config.family.gated && kind == "gelu";
  config.activation = config.family.gated ? "swiglu" : kind;
}

void read_t5(const ConfigMap& map, HuggingFaceConfig& config) {
  HuggingFaceConfig::Decoder& decoder = config.decoder;
  require_architecture(map,
                       {"T5ForConditionalGeneration", "T5WithLMHeadModel", "MT5ForConditionalGeneration"});
  config.width = config_count(map, "d_model", kMostConfigWidth);
  config.layers = config_count(map, "num_layers", kMostConfigLayers);
  decoder.layers = config_count_or(map, "num_decoder_layers", kMostConfigLayers, config.layers);
  config.heads = config.kv_heads = decoder.heads = config_count(map, "num_heads", kMostConfigHeads);
  config.head_size = config_count(map, "d_kv", kMostConfigUnits / config.heads);
  config.hidden = decoder.hidden = config_count(map, "d_ff", kMostConfigRows);
  decoder.buckets = config_count_or(map, "relative_attention_num_buckets", kMostConfigRows, 32);
  config.positions = config_count_or(map, "n_positions", kMostConfigRows, 0);
  const double rate = dropout_rate(map, "dropout_rate");
  config.attention_dropout = config.block_dropout = config.embedding_dropout = decoder.hidden_dropout = rate;
  read_hidden_layer(map, config);
}

void read_whisper(const ConfigMap& map, HuggingFaceConfig& config) {
  HuggingFaceConfig::Decoder& decoder = config.decoder;
  require_architecture(map, {"WhisperForConditionalGeneration"});
  map.skip("num_hidden_layers");
  config.width = config_count(map, "d_model", kMostConfigWidth);
  config.layers = config_count(map, "encoder_layers", kMostConfigLayers);
  decoder.layers = config_count(map, "decoder_layers", kMostConfigLayers);
  config.heads = config.kv_heads = config_count(map, "encoder_attention_heads", kMostConfigHeads);
  decoder.heads = config_count(map, "decoder_attention_heads", kMostConfigHeads);
  if (config.width % config.heads != 0 || config.width % decoder.heads != 0)
    map.at("d_model").refuse(fmt::format("expected a multiple of {} and {} heads, got {}", config.heads,
                                         decoder.heads, config.width));
  config.hidden = config_count(map, "encoder_ffn_dim", kMostConfigRows);
  decoder.hidden = config_count(map, "decoder_ffn_dim", kMostConfigRows);
  decoder.sound_bands = config_count(map, "num_mel_bins", 1000);
  decoder.sound_tokens = config_count(map, "max_source_positions", kMostSound);
  config.positions = config_count(map, "max_target_positions", kMostConfigRows);
  config.attention_dropout = dropout_rate(map, "attention_dropout");
  config.block_dropout = config.embedding_dropout = dropout_rate(map, "dropout");
  decoder.hidden_dropout = dropout_rate(map, "activation_dropout");
  for (const std::string_view key : {"encoder_layerdrop", "decoder_layerdrop"})
    config.stochastic_depth |= config_number_or(map, key, 1, 0) > 0;
  const std::string word = config_word_or(map, "activation_function", "gelu");
  if (word != "gelu" && word != "relu") map.at("activation_function").expected("gelu or relu");
  config.family.gated = false;
  config.activation = word;
}

std::string line(std::string_view name, std::string_view kind, std::string_view keys = "") {
  return fmt::format("      - {{name: {}, kind: {}{}}}\n", name, kind, keys);
}

std::string after_dropout(const std::string& name, double rate) {
  return rate > 0 ? name + "_dropout" : name;
}

/// One block of a stack.
struct Block {
  const HuggingFaceConfig& config;
  std::int64_t heads = 1, hidden = 1;
  bool decodes = false;  ///< it is causal, and reads the other stack
  bool first = false;    ///< it has the stack's table of biases

  bool sound() const { return config.decoder.sound_bands > 0; }
  const char* norm() const { return sound() ? "layer_norm" : "rms_norm"; }
  const char* bias() const { return sound() ? "" : ", bias: false"; }
  std::int64_t width() const { return sound() ? config.width : heads * config.head_size; }

  std::string attention_keys(std::string_view more) const {
    return fmt::format(
        ", heads: {}{}{}", heads, more,
        config.attention_dropout > 0 ? fmt::format(", dropout: {:.6g}", config.attention_dropout) : "");
  }

  std::string projection(const std::string& name, const std::string& addition,
                         const std::string& added_to) const {
    return line(name, "dense", fmt::format(", units: {}{}", config.width, bias())) +
           dropout_line(kInBlock, name, config.block_dropout) +
           line(addition, "add",
                fmt::format(", inputs: [{}, {}]", after_dropout(name, config.block_dropout), added_to));
  }

  /// Queries from one layer, keys (which never have a bias) and values from another.
  std::string three_products(std::string_view prefix, std::string_view from, std::string_view other) const {
    return line(fmt::format("{}queries", prefix), "dense",
                fmt::format(", units: {}{}, inputs: [{}]", width(), bias(), from)) +
           line(fmt::format("{}keys", prefix), "dense",
                fmt::format(", units: {}, bias: false, inputs: [{}]", width(), other)) +
           line(fmt::format("{}values", prefix), "dense",
                fmt::format(", units: {}{}, inputs: [{}]", width(), bias(), other));
  }

  std::string self_attention() const {
    const std::string causal = decodes ? ", causal: true" : "";
    if (sound())
      return three_products("", "norm1", "norm1") +
             line("attention", "attention", attention_keys(causal + ", inputs: [queries, keys, values]"));
    return line("qkv", "dense", fmt::format(", units: {}, bias: false", 3 * width())) +
           line("attention", "attention",
                attention_keys(causal +
                               fmt::format(", position_bias: {}", first ? config.decoder.buckets : 0)));
  }

  /// T5 adds zeros where a layer has no table, with the same kernels.
  std::string cross_attention(const std::string& encoded) const {
    return line("cross_norm", norm()) + three_products("cross_", "cross_norm", encoded) +
           line("cross_attention", "attention",
                attention_keys(std::string(sound() ? "" : ", position_bias: 0") +
                               ", inputs: [cross_queries, cross_keys, cross_values]")) +
           projection("cross_projection", "cross_add", "add1");
  }

  std::string hidden_layers(const std::string& added_to) const {
    const std::string& activation = config.activation;
    return line("norm2", norm()) +
           line("expand", "dense",
                fmt::format(", units: {}{}", (config.family.gated ? 2 : 1) * hidden, bias())) +
           line(activation, activation) + dropout_line(kInBlock, "hidden", config.decoder.hidden_dropout) +
           projection("contract", "add2", added_to);
  }

  std::string layers(const std::string& encoded) const {
    return line("norm1", norm()) + self_attention() + projection("projection", "add1", "previous") +
           (decodes ? cross_attention(encoded) : "") + hidden_layers(decodes ? "cross_add" : "add1");
  }
};

/// The blocks of a stack, of which the first may have a table, its norm, and T5's dropout after it.
std::string stack(Block block, std::int64_t layers, const std::string& name, const std::string& encoded) {
  const HuggingFaceConfig& config = block.config;
  std::string text;
  if (config.decoder.buckets > 0) {
    block.first = true;
    text = repeated_lines(1, name + "_first_block", block.layers(encoded));
    block.first = false;
    --layers;
  }
  return text + repeated_lines(layers, name + "_block", block.layers(encoded)) +
         fmt::format("  - {{name: {}_norm, kind: {}}}\n", name, block.norm()) +
         (block.sound() ? "" : dropout_line("  ", name + "_norm", config.block_dropout));
}

/// From the spectrum to tokens: two convolutions, the second of which halves the columns.
std::string sound_layers(const HuggingFaceConfig& config) {
  const std::int64_t bands = config.decoder.sound_bands, tokens = config.decoder.sound_tokens;
  return fmt::format(
             "  - {{name: sound, kind: slice, count: {0}}}\n"
             "  - {{name: spectrum, kind: reshape, shape: [{1}, {2}]}}\n"
             "  - {{name: conv1, kind: convolution, filters: {3}, kernel: 3, pad: 1}}\n"
             "  - {{name: conv1_gelu, kind: gelu}}\n"
             "  - {{name: conv2, kind: convolution, filters: {3}, kernel: 3, stride: 2, pad: 1}}\n"
             "  - {{name: conv2_gelu, kind: gelu}}\n"
             "  - {{name: source, kind: reshape, shape: [{4}, {3}]}}\n"
             "  - {{name: source_positions, kind: position_embedding, trained: false}}\n",
             2 * bands * tokens, bands, 2 * tokens, config.width, tokens) +
         dropout_line("  ", "source", config.embedding_dropout);
}

std::string target_words(const HuggingFaceConfig& config, std::int64_t tokens) {
  const bool sound = config.decoder.sound_bands > 0;
  if (!sound)
    return fmt::format("  - {{name: target, kind: slice, first: {0}, count: {0}, inputs: [tokens]}}\n",
                       tokens) +
           dropout_line("  ", "target", config.embedding_dropout);
  return fmt::format(
             "  - {{name: words, kind: slice, first: {}, count: {}, inputs: [input]}}\n"
             "  - {{name: tokens, kind: embedding, rows: {}, columns: {}}}\n"
             "  - {{name: positions, kind: position_embedding, rows: {}}}\n",
             2 * config.decoder.sound_bands * config.decoder.sound_tokens, tokens, config.vocabulary,
             config.width, config.positions) +
         dropout_line("  ", "target", config.embedding_dropout);
}

}  // namespace

void read_encoder_decoder(const ConfigMap& map, HuggingFaceConfig& config) {
  config.family.model_type == "whisper" ? read_whisper(map, config) : read_t5(map, config);
  config.vocabulary = config_count(map, "vocab_size", kMostConfigRows);
  config.tied = config_flag_or(map, "tie_word_embeddings", config.family.tied);
  config.embedding_width = config.width;
}

std::string encoder_decoder_input(const HuggingFaceConfig& config, std::int64_t tokens) {
  const std::int64_t sound = 2 * config.decoder.sound_bands * config.decoder.sound_tokens;
  return fmt::format("[{}]", sound > 0 ? sound + tokens : 2 * tokens);
}

std::string encoder_decoder_layers(const HuggingFaceConfig& config, std::int64_t tokens) {
  const HuggingFaceConfig::Decoder& decoder = config.decoder;
  const bool sound = decoder.sound_bands > 0;
  const std::string encoded = sound ? "encoder_norm" : after_dropout("encoder_norm", config.block_dropout);
  const std::string source = sound ? sound_layers(config)
                                   : fmt::format(
                                         "  - {{name: tokens, kind: embedding, rows: {}, columns: {}}}\n"
                                         "  - {{name: source, kind: slice, count: {}}}\n",
                                         config.vocabulary, config.width, tokens) +
                                         dropout_line("  ", "source", config.embedding_dropout);
  return source + stack({config, config.heads, config.hidden}, config.layers, "encoder", "") +
         target_words(config, tokens) +
         stack({config, decoder.heads, decoder.hidden, true}, decoder.layers, "decoder", encoded);
}

}  // namespace stepcast
