#include "models/hugging_face/network_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/layer_times/trace_text.hpp"

namespace stepcast {

namespace {

using Family = HuggingFaceConfig::Family;

// In the order of Family.
constexpr std::array kFamilies{"gpt2", "llama", "mistral", "mixtral", "bert", "vit"};

/// Keys of the rates of dropout; empty where a family has none.
struct DropoutKeys {
  std::string_view attention, block, embedding;
};
constexpr DropoutKeys kGpt2Dropout{"attn_pdrop", "resid_pdrop", "embd_pdrop"};
constexpr DropoutKeys kLlamaDropout{"attention_dropout", "", ""};
constexpr DropoutKeys kBertDropout{"attention_probs_dropout_prob", "hidden_dropout_prob",
                                   "hidden_dropout_prob"};
// In the order of Family.
constexpr std::array kDropoutKeys{kGpt2Dropout,  kLlamaDropout, kLlamaDropout,
                                  kLlamaDropout, kBertDropout,  kBertDropout};

constexpr std::int64_t kMostLayers = 1000;
constexpr std::int64_t kMostHeads = 100'000;
constexpr std::int64_t kMostWidth = 1'000'000;
constexpr std::int64_t kMostUnits = 100'000'000;  // of queries
constexpr std::int64_t kMostRows = 100'000'000;
constexpr std::size_t kLongestName = 1000;

/// The value of a key; nothing if it is missing or null.
std::optional<YamlValue> given(const YamlMap& map, std::string_view key) {
  auto value = map.maybe(key);
  if (value && value->is(YamlNode::Kind::nothing)) value.reset();
  return value;
}

std::int64_t count(const YamlMap& map, std::string_view key, std::int64_t most) {
  return map.at(key, "an integer >= 1").integer(1, most);
}

std::int64_t count_or(const YamlMap& map, std::string_view key, std::int64_t most,
                      std::int64_t default_value) {
  const auto value = given(map, key);
  return value ? value->integer(1, most) : default_value;
}

bool flag_or(const YamlMap& map, std::string_view key, bool default_value) {
  const auto value = given(map, key);
  return value ? value->boolean() : default_value;
}

/// Rates of dropout; a configuration without a key has none here, though the library's default may be 0.1.
void read_dropout(const YamlMap& map, HuggingFaceConfig& config) {
  const auto rate = [&](std::string_view key) {
    const auto value = key.empty() ? std::nullopt : given(map, key);
    return value ? value->number(0, 0.999) : 0;
  };
  const DropoutKeys& keys = kDropoutKeys.at(static_cast<std::size_t>(config.family));
  config.attention_dropout = rate(keys.attention);
  config.block_dropout = rate(keys.block);
  config.embedding_dropout = rate(keys.embedding);
}

/// The kind of layer that an activation of the library is. Approximations of GELU have its cost.
std::string plain_activation(const YamlMap& map, std::string_view key) {
  const std::vector<std::string> words{"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh", "relu"};
  const auto value = given(map, key);
  return value && words[value->one_of(words)] == "relu" ? "relu" : "gelu";
}

void read_gpt2(const YamlMap& map, HuggingFaceConfig& config) {
  config.layers = count(map, "n_layer", kMostLayers);
  config.width = count(map, "n_embd", kMostWidth);
  config.heads = count(map, "n_head", kMostHeads);
  config.hidden = count_or(map, "n_inner", kMostRows, 4 * config.width);
  config.vocabulary = count(map, "vocab_size", kMostRows);
  config.positions = count(map, "n_positions", kMostRows);
  config.activation = plain_activation(map, "activation_function");
  config.tied = flag_or(map, "tie_word_embeddings", true);
}

/// Keys that llama, mistral, mixtral, bert and vit have in common.
void read_sizes(const YamlMap& map, HuggingFaceConfig& config) {
  config.layers = count(map, "num_hidden_layers", kMostLayers);
  config.width = count(map, "hidden_size", kMostWidth);
  config.heads = count(map, "num_attention_heads", kMostHeads);
  config.hidden = count(map, "intermediate_size", kMostRows);
}

void read_words(const YamlMap& map, HuggingFaceConfig& config) {
  config.vocabulary = count(map, "vocab_size", kMostRows);
  config.positions = count(map, "max_position_embeddings", kMostRows);
}

void read_llama(const YamlMap& map, HuggingFaceConfig& config) {
  read_sizes(map, config);
  read_words(map, config);
  if (const auto activation = given(map, "hidden_act")) activation->one_of({"silu"});
  config.activation = "swiglu";
  config.attention_bias = flag_or(map, "attention_bias", false);
  config.hidden_bias = flag_or(map, "mlp_bias", false);
  config.tied = flag_or(map, "tie_word_embeddings", false);
  if (config.family == Family::llama) return;
  config.attention_window = count_or(map, "sliding_window", kMostRows, 0);
  if (config.family != Family::mixtral) return;
  config.experts = count(map, "num_local_experts", 100'000);
  config.top = map.at("num_experts_per_tok", "an integer >= 1").integer(1, config.experts);
}

/// True if `architectures` names the form without next-sentence prediction.
bool is_masked_only(const YamlMap& map) {
  const auto architectures = given(map, "architectures");
  if (!architectures) return false;
  const auto names = architectures->list();
  return std::any_of(names.begin(), names.end(),
                     [](const YamlValue& name) { return name.text() == "BertForMaskedLM"; });
}

void read_bert(const YamlMap& map, HuggingFaceConfig& config) {
  read_sizes(map, config);
  read_words(map, config);
  config.token_types = count(map, "type_vocab_size", 1000);
  config.activation = plain_activation(map, "hidden_act");
  config.tied = flag_or(map, "tie_word_embeddings", true);
  config.masked_only = is_masked_only(map);
}

void read_vit(const YamlMap& map, HuggingFaceConfig& config) {
  read_sizes(map, config);
  config.image = count(map, "image_size", 30'000);
  config.patch = map.at("patch_size", "an integer >= 1").integer(1, config.image);
  config.channels = count(map, "num_channels", 10'000);
  config.activation = plain_activation(map, "hidden_act");
  config.attention_bias = flag_or(map, "qkv_bias", true);
  const auto labels = given(map, "id2label");
  if (labels && !given(map, "num_labels")) {
    config.classes = static_cast<std::int64_t>(labels->any_map().entries().size());
    if (config.classes == 0) labels->expected("at least one class");
  } else {
    config.classes = map.at("num_labels", "the number of classes, or id2label").integer(1, kMostRows);
  }
}

/// Reads the heads of attention after all other sizes.
void read_heads(const YamlMap& map, HuggingFaceConfig& config) {
  config.kv_heads = config.heads;
  const bool llama = config.activation == "swiglu";
  if (const auto few = llama ? given(map, "num_key_value_heads") : std::nullopt) {
    config.kv_heads = few->integer(1, config.heads);
    if (config.heads % config.kv_heads != 0)
      few->refuse(fmt::format("expected a divisor of {} heads, got {}", config.heads, config.kv_heads));
  }
  if (const auto head = llama ? given(map, "head_dim") : std::nullopt) {
    config.head = head->integer(1, kMostUnits / config.heads);
    return;
  }
  if (config.width % config.heads != 0) {
    const YamlValue width = map.at(config.family == Family::gpt2 ? "n_embd" : "hidden_size");
    width.refuse(fmt::format("expected a multiple of {} heads, got {}", config.heads, config.width));
  }
  config.head = config.width / config.heads;
}

}  // namespace

const char* to_string(HuggingFaceConfig::Family family) {
  return kFamilies.at(static_cast<std::size_t>(family));
}

HuggingFaceConfig read_hugging_face_config(const YamlValue& value) {
  const YamlMap map = value.any_map();
  HuggingFaceConfig config;
  config.family = static_cast<Family>(
      map.at("model_type", "the family of the network").one_of({kFamilies.begin(), kFamilies.end()}));
  const auto origin = given(map, "_name_or_path");
  if (origin && origin->is(YamlNode::Kind::scalar) && origin->node().text.size() <= kLongestName)
    config.origin = printable(origin->node().text);
  if (config.family == Family::gpt2) {
    read_gpt2(map, config);
  } else if (config.family == Family::bert) {
    read_bert(map, config);
  } else if (config.family == Family::vit) {
    read_vit(map, config);
  } else {
    read_llama(map, config);
  }
  read_dropout(map, config);
  read_heads(map, config);
  return config;
}

namespace {

const char* bias(bool has_bias) {
  return has_bias ? "" : ", bias: false";
}

/// Dropout behind a layer, which is then called NAME_dropout; nothing without a rate.
std::string dropout(const char* indent, const char* name, double rate) {
  if (!(rate > 0)) return "";
  return fmt::format("{}- {{name: {}_dropout, kind: dropout, rate: {:.6g}}}\n", indent, name, rate);
}

constexpr const char* kInBlock = "      ";

/// The last layer of what a block adds.
std::string added(const HuggingFaceConfig& config, const char* name) {
  return fmt::format("{}{}", name, config.block_dropout > 0 ? "_dropout" : "");
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
  text += fmt::format(
      "      - {{name: attention, kind: attention, {}{}{}}}\n", heads, causal ? ", causal: true" : "",
      config.attention_dropout > 0 ? fmt::format(", dropout: {:.6g}", config.attention_dropout) : "");
  // Without a bias of queries, keys and values, ViT still has one here.
  const bool projection_bias = config.family == Family::vit || config.attention_bias;
  return text +
         fmt::format("      - {{name: projection, kind: dense, units: {}{}}}\n", config.width,
                     bias(projection_bias)) +
         dropout(kInBlock, "projection", config.block_dropout);
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
             config.width, bias(config.hidden_bias)) +
         dropout(kInBlock, "contract", config.block_dropout);
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
      "      - {{name: add1, kind: add, inputs: [{}, previous]}}\n"
      "      - {{name: norm2, kind: {}}}\n"
      "{}"
      "      - {{name: add2, kind: add, inputs: [{}, add1]}}\n"
      "  - {{name: final_norm, kind: {}}}\n",
      config.layers, norm, attention_layers(config), added(config, "projection"), norm, hidden_layers(config),
      config.experts > 0 ? "experts" : added(config, "contract"), norm);
}

/// Blocks that normalise after both additions, as in BERT.
std::string post_norm_blocks(const HuggingFaceConfig& config) {
  return fmt::format(
      "  - repeat: {}\n"
      "    name: block\n"
      "    layers:\n"
      "{}"
      "      - {{name: add1, kind: add, inputs: [{}, previous]}}\n"
      "      - {{name: norm1, kind: layer_norm}}\n"
      "{}"
      "      - {{name: add2, kind: add, inputs: [{}, norm1]}}\n"
      "      - {{name: norm2, kind: layer_norm}}\n",
      config.layers, attention_layers(config), added(config, "projection"), hidden_layers(config),
      added(config, "contract"));
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
  return word_table(config) + (table ? position_table(config.positions) : "") +
         dropout("  ", "embedding", config.embedding_dropout) + pre_norm_blocks(config) +
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
      dropout("  ", "embedding", config.embedding_dropout) + post_norm_blocks(config);
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
         position_table(side * side + 1) + dropout("  ", "embedding", config.embedding_dropout) +
         pre_norm_blocks(config) +
         fmt::format(
             "  - {{name: class_out, kind: first_token}}\n"
             "  - {{name: classes, kind: dense, units: {}}}\n",
             config.classes) +
         kLoss;
}

std::string source_of(const HuggingFaceConfig& config, std::int64_t sequence) {
  const bool drops = config.attention_dropout + config.block_dropout + config.embedding_dropout > 0;
  std::string text = fmt::format("config.json of {}, model_type {} (Hugging Face){}",
                                 config.origin.empty() ? "a network" : config.origin,
                                 to_string(config.family), drops ? "" : "; without dropout");
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
