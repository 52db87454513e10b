#include <algorithm>
#include <array>

#include "models/hugging_face/config_keys.hpp"

namespace stepcast {
namespace {

/// A key and the name that the library's configurations also take for it (`attribute_map` and the arguments
/// of `__init__` in configuration_bloom.py, configuration_falcon.py, configuration_gpt2.py and
/// configuration_distilbert.py).
struct SecondName {
  std::string_view key, other;
};

constexpr std::array<SecondName, 8> kSecondNames{{{"hidden_size", "n_embed"},
                                                  {"n_layer", "num_hidden_layers"},
                                                  {"n_head", "num_attention_heads"},
                                                  {"n_embd", "hidden_size"},
                                                  {"n_positions", "max_position_embeddings"},
                                                  {"dim", "hidden_size"},
                                                  {"n_layers", "num_hidden_layers"},
                                                  {"n_heads", "num_attention_heads"}}};

/// Keys without any effect on sizes and work: how a network starts, is loaded, generates text, routes tokens
/// or is evaluated, and constants of its functions.
constexpr std::string_view kWithoutEffect =
    " _num_labels _sliding_window_pattern custom_pipelines learned_embeddings _attn_implementation "
    "_attn_implementation_autoset _commit_hash _flash_attn_2_enabled apply_layernorm"
    " apply_spec_augment attention_softmax_in_fp32 attn_logit_softcapping aux_loss_alpha bad_words_ids"
    " begin_suppress_tokens bias_dropout_fusion bos_token cache_implementation chunk_size_feed_forward"
    " classifier_dropout classifier_proj_size cls_token_id dense_act_fn directionality diversity_penalty"
    " do_sample dtype early_stopping encoder_stride eos_token ep_size final_logit_softcapping"
    " finetuning_task forced_decoder_ids gradient_checkpointing id2label init_std"
    " initializer_cutoff_factor initializer_factor initializer_range is_gated_act label2id layer_types"
    " layerscale_value length_penalty masked_softmax_fusion max_length max_window_layers"
    " median_filter_width min_length n_ctx n_group no_repeat_ngram_size norm_before_gate norm_topk_prob"
    " num_beam_groups num_beams num_labels num_return_sequences offset_alibi"
    " original_max_position_embeddings out_features out_indices output_attentions output_hidden_states"
    " output_past output_router_logits output_scores partial_rotary_factor path_norm pooler_act"
    " pooler_fc_size pooler_num_attention_heads pooler_num_fc_layers pooler_output_size"
    " pooler_size_per_head pooler_type prefix pretraining_tp problem_type qa_dropout query_pre_attn_scalar"
    " relative_attention_max_distance remove_invalid_values reorder_and_upcast_attn"
    " rescale_prenorm_residual reshape_hidden_states reshape_last_stage residual_in_fp32 return_dict"
    " return_dict_in_generate rotary_emb_base rotary_pct routed_scaling_factor router_jitter_noise"
    " scale_attn_by_inverse_layer_idx scale_attn_weights scale_embedding scale_embeddings scoring_func"
    " seq_aux seq_classif_dropout seq_length sinusoidal_pos_embds skip_bias_add skip_bias_add_qkv"
    " sliding_window sliding_window_pattern slow_but_exact stage_names suppress_tokens"
    " task_specific_params temperature tie_weights_ time_step_floor time_step_limit time_step_max"
    " time_step_min time_step_rank tokenizer_class top_k top_p topk_group topk_method torch_dtype"
    " torchscript transformers_version typical_p use_cache use_mamba_kernels use_mrope use_sliding_window"
    " ";

constexpr auto kEnds = std::to_array<std::string_view>(
    {"_token_id", "_token_ids", "_eps", "_epsilon", "_loss_coef", "_penalty", "_prob_threshold"});
constexpr auto kStarts = std::to_array<std::string_view>(
    {"rope_", "mask_time_", "mask_feature_", "summary_", "unsloth_", "sbert_"});

bool without_effect(std::string_view key) {
  const auto ends = [&](std::string_view end) { return key.ends_with(end); };
  const auto starts = [&](std::string_view start) { return key.starts_with(start); };
  return kWithoutEffect.find(" " + std::string(key) + " ") != std::string_view::npos ||
         std::ranges::any_of(kEnds, ends) || std::ranges::any_of(kStarts, starts);
}

/// True for a value that no network has a part of: null, false, 0 or nothing in a list.
bool is_off(const YamlValue& value) {
  using Kind = YamlNode::Kind;
  const YamlNode& node = value.node();
  if (value.is(Kind::nothing)) return true;
  if (value.is(Kind::scalar)) return node.text == "false" || node.text == "0" || node.text == "0.0";
  return node.items.empty() && node.entries.empty();
}

}  // namespace

std::string_view ConfigMap::name_in_file(std::string_view key) const {
  if (map_.has(key)) return key;
  for (const SecondName& one : kSecondNames) {
    if (one.key == key && map_.has(one.other)) return one.other;
  }
  return key;
}

YamlValue ConfigMap::at(std::string_view key, std::string_view expected) const {
  const std::string_view name = name_in_file(key);
  read_.emplace(name);
  return map_.at(name, expected);
}

std::optional<YamlValue> ConfigMap::maybe(std::string_view key) const {
  const std::string_view name = name_in_file(key);
  read_.emplace(name);
  return map_.maybe(name);
}

std::vector<std::string> ConfigMap::unread() const {
  std::vector<std::string> keys;
  for (const auto& [key, value] : map_.entries()) {
    if (!read_.contains(key) && !without_effect(key) && !is_off(value)) keys.push_back(key);
  }
  return keys;
}

}  // namespace stepcast
