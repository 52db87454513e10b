#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/error.hpp"
#include "core/text.hpp"
#include "models/hugging_face/config_keys.hpp"

namespace stepcast {
namespace {

using Family = HuggingFaceFamily;
using Head = HuggingFaceConfig::Head;

constexpr std::size_t kLongestName = 1000;

void refuse_quantized(const ConfigMap& map, const HuggingFaceConfig& config) {
  const auto quantized = given(map, "quantization_config");
  const auto method = quantized ? quantized->any_map().maybe("quant_method") : std::nullopt;
  const bool fp8 = config.family.latent && method && method->text() == "fp8";  // as it was trained
  if (quantized && !fp8)
    quantized->refuse("the weights are quantized; give the configuration of the network that is trained");
}

/// Refuses sizes of parts that the family does not have here.
void refuse_other_sizes(const ConfigMap& map, const HuggingFaceConfig& config) {
  const auto heads = given(map, "num_key_value_heads");
  if (heads && !config.family.grouped && heads->integer(1) != config.heads)
    heads->expected(fmt::format("{}, the heads of queries", config.heads));
  if (const auto pruned = given(map, "pruned_heads"); pruned && !pruned->any_map().entries().empty())
    pruned->expected("no heads that are left out");
  for (const std::string_view key : {"num_experts", "num_local_experts"}) {
    const auto value = given(map, key);
    if (value && key != config.family.experts_key && value->integer(0) > 1)
      value->refuse(fmt::format("a network of {} has no experts here", config.family.model_type));
  }
  for (const std::string_view key : {"word_embed_proj_dim", "embedding_size"}) {
    const auto value = given(map, key);
    if (value && value->integer(1) != config.embedding_width)
      value->expected(fmt::format("{}, the width of the blocks", config.width));
  }
  for (const YamlValue& layer :
       given(map, "layer_types") ? map.at("layer_types").list() : std::vector<YamlValue>{})
    layer.one_of({"full_attention", "sliding_attention"});
  if (const auto layers = given(map, "mlp_only_layers"); layers && !layers->list().empty())
    layers->expected("no layers without experts");
}

/// Refuses keys that change the network in a way that no family here has.
void refuse_other_networks(const ConfigMap& map, const HuggingFaceConfig& config) {
  constexpr std::array<NeutralKey, 15> kKeys{{{"add_cross_attention", "false"},
                                              {"enable_bias", "true"},
                                              {"_remove_final_layer_norm", "false"},
                                              {"mlp_type", "default"},
                                              {"position_embedding_type", "absolute"},
                                              {"qk_layernorm", "false"},
                                              {"use_qk_norm", "false"},
                                              {"do_layer_norm_before", "true"},
                                              {"layer_norm_elementwise_affine", "true"},
                                              {"norm_type", "layer_norm"},
                                              {"apply_residual_connection_post_layernorm", "false"},
                                              {"decoder_sparse_step", "1"},
                                              {"moe_layer_freq", "1"},
                                              {"problem_type", "single_label_classification"},
                                              {"use_bidirectional_attention", "false"}}};
  constexpr std::array<NeutralKey, 4> kLatentKeys{
      {{"q_lora_rank", "0"}, {"kv_lora_rank", "0"}, {"n_routed_experts", "0"}, {"n_shared_experts", "0"}}};
  constexpr std::array<NeutralKey, 2> kBiasKeys{{{"attention_bias", "false"}, {"mlp_bias", "false"}}};
  const bool two = config.family.kind == Family::Kind::encoder_decoder;
  require_neutral(map, {"is_encoder_decoder", two ? "true" : "false"});
  for (const NeutralKey& one : kKeys) require_neutral(map, one);
  for (const NeutralKey& one : kLatentKeys) {
    if (!config.family.latent) require_neutral(map, one);
  }
  if (!config.family.shared_expert) require_neutral(map, {"shared_expert_intermediate_size", "0"});
  for (const NeutralKey& one : kBiasKeys) {
    if (!config.family.attention_bias_key && config.family.model_type != "gpt_neox")
      require_neutral(map, one);
  }
  refuse_other_sizes(map, config);
  refuse_quantized(map, config);
  if (config.family.kind == Family::Kind::encoder && config_flag_or(map, "is_decoder", false))
    map.at("is_decoder").expected("false");
}

/// Refuses code of the network's own, except that of families whose code became the library's.
void refuse_own_code(const ConfigMap& map, const HuggingFaceConfig& config) {
  constexpr std::array<std::string_view, 5> kLibrary{"phi", "phi3", "falcon", "deepseek_v2", "deepseek_v3"};
  const auto code = given(map, "auto_map");
  if (code && std::ranges::find(kLibrary, config.family.model_type) == kLibrary.end())
    code->refuse(fmt::format(
        "the network is code of its own, which may differ from that of {}; without this key it is "
        "read as one of {}",
        config.family.model_type, config.family.model_type));
}

/// Rates of dropout; a configuration without a key has none here, though the library's default may be 0.1.
void read_dropout(const ConfigMap& map, HuggingFaceConfig& config) {
  const Family::Keys& keys = config.family.keys;
  config.attention_dropout = dropout_rate(map, keys.attention_dropout);
  config.block_dropout = dropout_rate(map, keys.block_dropout);
  config.embedding_dropout = dropout_rate(map, keys.embedding_dropout);
}

/// The kind of layer that an activation of the library is. Approximations of GELU have its cost.
void read_activation(const ConfigMap& map, HuggingFaceConfig& config) {
  const auto value = given(map, config.family.keys.activation);
  const bool gemma = config.family.model_type.starts_with("gemma");
  std::vector<std::string> words{"gelu", "gelu_new", "gelu_fast", "gelu_pytorch_tanh"};
  if (!config.family.gated) words.insert(words.end(), {"relu"});
  if (config.family.gated && !gemma) words = {"silu"};
  const std::string word = value ? words[value->one_of(words)] : "";
  config.gelu_gate = gemma;
  if (gemma) map.skip("hidden_act");  // the library takes hidden_activation
  config.activation = config.family.gated ? "swiglu" : word == "relu" ? "relu" : "gelu";
}

void read_biases(const ConfigMap& map, HuggingFaceConfig& config) {
  Family::Biases& biases = config.family.biases;
  if (const auto all = given(map, config.family.keys.bias))
    biases.qkv = biases.projection = biases.hidden = all->boolean();
  if (config.family.attention_bias_key) {
    biases.qkv = biases.projection = config_flag_or(map, "attention_bias", false);
    biases.hidden = config_flag_or(map, "mlp_bias", false);
  }
}

/// The heads of keys and values; they divide those of queries.
std::int64_t key_value_heads(const YamlValue& value, std::int64_t heads) {
  const std::int64_t few = value.integer(1, heads);
  if (heads % few != 0) value.refuse(fmt::format("expected a divisor of {} heads, got {}", heads, few));
  return few;
}

/// The hidden layer of DINOv2, whose gate narrows it, and its token for masked places.
void read_dinov2(const ConfigMap& map, HuggingFaceConfig& config) {
  const double ratio = config_number_or(map, "mlp_ratio", 100, 4);
  config.hidden = static_cast<std::int64_t>(config.width * ratio);
  if (config.hidden < 1) map.at("mlp_ratio").expected("a ratio that leaves hidden units");
  config.mask_token = config_flag_or(map, "use_mask_token", true);
  config.stochastic_depth = config_number_or(map, "drop_path_rate", 1, 0) > 0;
  if (!config_flag_or(map, "use_swiglu_ffn", false)) return;
  config.family.gated = true;
  config.activation = "swiglu";
  config.hidden = (config.hidden * 2 / 3 + 7) / 8 * 8;
}

/// Forms of a family that keys choose.
void read_forms(const ConfigMap& map, HuggingFaceConfig& config) {
  Family& family = config.family;
  if (family.model_type == "falcon") {
    map.skip("ff_factor");
    const bool larger = config_flag_or(map, "new_decoder_architecture", false);
    const bool parallel = config_flag_or(map, "parallel_attn", true) || larger;
    const bool two = config_count_or(map, "num_ln_in_parallel_attn", 2, 2) == 2 && larger;
    family.blocks = !parallel ? Family::Blocks::before
                    : two     ? Family::Blocks::parallel_two
                              : Family::Blocks::parallel;
    if (config_flag_or(map, "alibi", false)) family.positions = Family::Positions::biases;
    const auto few = given(map, "num_kv_heads");
    if (few && larger) config.kv_heads = key_value_heads(*few, config.heads);
    if (config_flag_or(map, "multi_query", true) && !larger) config.kv_heads = 1;
  }
  if (family.model_type == "gpt_neox") {
    if (!config_flag_or(map, "use_parallel_residual", true)) family.blocks = Family::Blocks::before;
    family.biases.qkv = family.biases.projection = config_flag_or(map, "attention_bias", true);
  }
  if (family.kind == Family::Kind::image) family.biases.qkv = config_flag_or(map, "qkv_bias", true);
  if (family.model_type == "olmo") config.clipped = given(map, "clip_qkv").has_value();
  if (family.model_type == "dinov2") read_dinov2(map, config);
}

/// The features of DeepSeek's attention, its shared experts and its first blocks, which have none.
void read_latent(const ConfigMap& map, HuggingFaceConfig& config) {
  HuggingFaceConfig::Latent& latent = config.latent;
  const std::int64_t most = kMostConfigUnits / config.heads;
  latent.q_rank = config_count_or(map, "q_lora_rank", kMostConfigWidth, 0);
  latent.kv_rank = config_count(map, "kv_lora_rank", kMostConfigWidth);
  latent.plain = config_count(map, "qk_nope_head_dim", most);
  latent.rotary = config_count(map, "qk_rope_head_dim", most);
  latent.value = config_count(map, "v_head_dim", most);
  const auto shared = given(map, "n_shared_experts");
  config.shared_hidden = shared ? shared->integer(0, 1000) * config.hidden : 0;
  const auto dense = given(map, "first_k_dense_replace");
  config.first_dense = dense ? dense->integer(0, config.layers) : 0;
  if (config.first_dense > 0) config.dense_hidden = config_count(map, "intermediate_size", kMostConfigRows);
  const auto further = given(map, "num_nextn_predict_layers");
  config.unbuilt_layers = further ? further->integer(0, kMostConfigLayers) : 0;
}

/// Reads the heads of attention after the width.
void read_heads(const ConfigMap& map, HuggingFaceConfig& config) {
  if (config.family.latent) return read_latent(map, config);
  const bool grouped = config.family.grouped;
  if (const auto few = grouped ? given(map, "num_key_value_heads") : std::nullopt)
    config.kv_heads = key_value_heads(*few, config.heads);
  if (const auto head = grouped ? given(map, "head_dim") : std::nullopt) {
    config.head_size = head->integer(1, kMostConfigUnits / config.heads);
    return;
  }
  if (config.width % config.heads != 0)
    map.at(config.family.keys.width)
        .refuse(fmt::format("expected a multiple of {} heads, got {}", config.heads, config.width));
  config.head_size = config.width / config.heads;
}

void read_sizes(const ConfigMap& map, HuggingFaceConfig& config) {
  const Family::Keys& keys = config.family.keys;
  config.layers = config_count(map, keys.layers, kMostConfigLayers);
  config.width = config_count(map, keys.width, kMostConfigWidth);
  config.heads = config.kv_heads = config_count(map, keys.heads, kMostConfigHeads);
  config.embedding_width = config.family.model_type == "electra"
                               ? config_count_or(map, "embedding_size", kMostConfigWidth, config.width)
                               : config.width;
  if (!config.family.experts_key.empty()) {
    map.skip("intermediate_size");  // of blocks without experts, of which there may be none
    config.hidden = config_count(map, config.family.expert_hidden_key, kMostConfigRows);
    config.experts = config_count(map, config.family.experts_key, 100'000);
    config.top = map.at("num_experts_per_tok", "an integer >= 1").integer(1, config.experts);
    if (config.family.shared_expert)
      config.shared_hidden = config_count(map, "shared_expert_intermediate_size", kMostConfigRows);
  } else {
    config.hidden = config.family.four_widths
                        ? config_count_or(map, keys.hidden, kMostConfigRows, 4 * config.width)
                        : config_count(map, keys.hidden, kMostConfigRows);
  }
}

void read_words(const ConfigMap& map, HuggingFaceConfig& config) {
  const Family& family = config.family;
  config.vocabulary = config_count(map, "vocab_size", kMostConfigRows);
  const auto& key = family.keys.positions;
  if (family.positions == Family::Positions::table) {
    config.positions =
        map.at(key, "an integer >= 1").integer(1 + family.reserved_positions, kMostConfigRows) -
        family.reserved_positions;
  } else {
    config.positions = config_count_or(map, key, kMostConfigRows, 0);
  }
  config.tied = config_flag_or(map, "tie_word_embeddings", family.tied);
  const bool windowed = family.model_type != "qwen2" && family.model_type != "qwen3" && family.gated;
  if (windowed || config_flag_or(map, "use_sliding_window", false))
    config.attention_window = config_count_or(map, "sliding_window", kMostConfigRows, 0);
  if (family.kind == Family::Kind::encoder && family.model_type != "distilbert")
    config.token_types = config_count(map, "type_vocab_size", 1000);
}

void read_image(const ConfigMap& map, HuggingFaceConfig& config) {
  config.image = config_count(map, "image_size", 30'000);
  config.patch = map.at("patch_size", "an integer >= 1").integer(1, config.image);
  config.channels = config_count(map, "num_channels", 10'000);
}

/// The head that a class of the library has, by the end of its name.
struct NamedHead {
  std::string_view end;
  Head head;
  std::int64_t classes = 0;  ///< 0: as many as the configuration says
};

constexpr std::array<NamedHead, 4> kDecoderHeads{{{"ForCausalLM", Head::language},
                                                  {"LMHeadModel", Head::language},
                                                  {"ForSequenceClassification", Head::sample},
                                                  {"ForTokenClassification", Head::tokens}}};
constexpr std::array<NamedHead, 6> kEncoderHeads{{{"ForMaskedLM", Head::masked},
                                                  {"BertForPreTraining", Head::pretraining},
                                                  {"ElectraForPreTraining", Head::discriminator},
                                                  {"ForSequenceClassification", Head::sample},
                                                  {"ForTokenClassification", Head::tokens},
                                                  {"ForQuestionAnswering", Head::tokens, 2}}};
constexpr std::array<NamedHead, 1> kImageHeads{{{"ForImageClassification", Head::sample}}};

/// The head of a network that `architectures` does not name.
Head usual_head(const Family& family) {
  if (family.kind == Family::Kind::decoder) return Head::language;
  if (family.kind == Family::Kind::image) return Head::sample;
  if (family.model_type == "electra") return Head::discriminator;
  return family.model_type == "bert" ? Head::pretraining : Head::masked;
}

/// True if a class such as "Qwen2ForCausalLM" is of a family such as qwen2, and not of qwen2_moe.
bool is_of_family(std::string_view name, std::string_view model_type) {
  const auto lower = [](std::string_view text) {
    std::string letters;
    for (const char one : text) {
      if (one != '_' && one != '-')
        letters += static_cast<char>(one >= 'A' && one <= 'Z' ? one - 'A' + 'a' : one);
    }
    return letters;
  };
  const std::string all = lower(name);
  std::vector<std::string> stems{lower(model_type == "gemma3_text" ? "gemma3" : model_type)};
  if (model_type == "falcon") stems.emplace_back("rw");
  if (model_type == "camembert" || model_type == "xlm-roberta") stems.emplace_back("roberta");
  return std::ranges::any_of(stems, [&](const std::string& stem) {
    const std::string rest = all.starts_with(stem) ? all.substr(stem.size()) : "";
    return rest.starts_with("for") || rest.starts_with("lmhead");
  });
}

template <class Heads>
const NamedHead& named_head(const YamlValue& name, const Heads& heads, std::string_view model_type) {
  for (const NamedHead& one : heads) {
    if (!name.text().ends_with(one.end)) continue;
    if (!is_of_family(name.text(), model_type)) name.expected(fmt::format("a network of {}", model_type));
    return one;
  }
  std::vector<std::string_view> ends;
  for (const NamedHead& one : heads) ends.push_back(one.end);
  name.expected(fmt::format("a network with a loss, whose name ends with {}", fmt::join(ends, ", ")));
}

void read_head(const ConfigMap& map, HuggingFaceConfig& config) {
  config.head = usual_head(config.family);
  const auto architectures = given(map, "architectures");
  const std::vector<YamlValue> names = architectures ? architectures->list() : std::vector<YamlValue>{};
  if (names.size() > 1) architectures->expected("one network");
  if (!names.empty()) {
    using Kind = Family::Kind;
    const NamedHead& named =
        config.family.kind == Kind::decoder   ? named_head(names[0], kDecoderHeads, config.family.model_type)
        : config.family.kind == Kind::encoder ? named_head(names[0], kEncoderHeads, config.family.model_type)
                                              : named_head(names[0], kImageHeads, config.family.model_type);
    config.head = named.head;
    config.classes = named.classes;
  }
  if ((config.head == Head::sample || config.head == Head::tokens) && config.classes == 0)
    read_classes(map, config);
}

/// Reads a family that is no stack of equal blocks with one sequence. @returns false for the other families
bool read_other_kind(const ConfigMap& map, HuggingFaceConfig& config) {
  using Kind = Family::Kind;
  const Kind kind = config.family.kind;
  if (kind == Kind::encoder_decoder) {
    read_encoder_decoder(map, config);
  } else if (kind == Kind::image_stages) {
    read_image_stages(map, config);
  } else if (kind == Kind::state_space) {
    read_state_space(map, config);
  } else {
    return false;
  }
  refuse_other_networks(map, config);
  return true;
}

void read_network(const ConfigMap& map, HuggingFaceConfig& config) {
  refuse_own_code(map, config);
  if (read_other_kind(map, config)) return;
  read_sizes(map, config);
  read_activation(map, config);
  config.reads_tokens() ? read_words(map, config) : read_image(map, config);
  read_biases(map, config);
  read_forms(map, config);
  read_dropout(map, config);
  read_heads(map, config);
  refuse_other_networks(map, config);
  read_head(map, config);
}

}  // namespace

HuggingFaceConfig read_hugging_face_config(const YamlValue& value) {
  const ConfigMap map(value.any_map());
  std::vector<std::string> words;
  for (const Family& family : hugging_face_families()) words.emplace_back(family.model_type);
  HuggingFaceConfig config;
  config.family = hugging_face_families()[map.at("model_type", "the family of the network").one_of(words)];
  const auto origin = given(map, "_name_or_path");
  if (origin && origin->is(YamlNode::Kind::scalar) && origin->node().text.size() <= kLongestName)
    config.origin = printable(origin->node().text);
  read_network(map, config);
  config.unread = map.unread();
  return config;
}

}  // namespace stepcast
