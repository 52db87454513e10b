#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/text.hpp"
#include "models/hugging_face/network_text.hpp"

namespace stepcast {
namespace {

using Family = HuggingFaceConfig::Family;

// In the order of Family.
constexpr std::array kFamilies{"gpt2", "llama", "mistral", "mixtral", "bert", "vit"};

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
  read_heads(map, config);
  return config;
}

}  // namespace stepcast
