#include "models/hugging_face/family.hpp"

namespace stepcast {
namespace {

using Family = HuggingFaceFamily;
using Blocks = Family::Blocks;
using Positions = Family::Positions;

constexpr Family::Biases kAll{true, true, true, false};
constexpr Family::Biases kEncoder{true, true, true, true};
constexpr Family::Keys kStandard{};
constexpr Family::Keys kBert{.attention_dropout = "attention_probs_dropout_prob",
                             .block_dropout = "hidden_dropout_prob",
                             .embedding_dropout = "hidden_dropout_prob"};

Family encoder(std::string_view model_type, int reserved) {
  return {.model_type = model_type,
          .kind = Family::Kind::encoder,
          .norm = Family::Norm::layer,
          .blocks = Blocks::after_sum,
          .positions = Positions::table,
          .keys = kBert,
          .biases = kEncoder,
          .gated = false,
          .tied = true,
          .grouped = false,
          .reserved_positions = reserved};
}

/// Families with layer norm, biases and hidden layers without a gate.
Family plain_decoder(std::string_view model_type, Blocks blocks, Positions positions,
                     const Family::Keys& keys, const Family::Biases& biases) {
  return {.model_type = model_type,
          .norm = Family::Norm::layer,
          .blocks = blocks,
          .positions = positions,
          .keys = keys,
          .biases = biases,
          .gated = false,
          .tied = true,
          .grouped = false};
}

Family gpt2() {
  Family family = plain_decoder("gpt2", Blocks::before, Positions::table,
                                {.width = "n_embd",
                                 .layers = "n_layer",
                                 .heads = "n_head",
                                 .hidden = "n_inner",
                                 .positions = "n_positions",
                                 .activation = "activation_function",
                                 .attention_dropout = "attn_pdrop",
                                 .block_dropout = "resid_pdrop",
                                 .embedding_dropout = "embd_pdrop"},
                                kAll);
  family.four_widths = true;
  return family;
}

Family opt() {
  Family family = plain_decoder("opt", Blocks::before, Positions::table,
                                {.hidden = "ffn_dim",
                                 .activation = "activation_function",
                                 .block_dropout = "dropout",
                                 .embedding_dropout = "dropout"},
                                kAll);
  family.position_offset = 2;
  return family;
}

Family bloom() {
  Family family = plain_decoder("bloom", Blocks::before, Positions::biases,
                                {.layers = "n_layer",
                                 .heads = "n_head",
                                 .hidden = "",
                                 .positions = "",
                                 .activation = "",
                                 .block_dropout = "hidden_dropout"},
                                kAll);
  family.four_widths = true;
  return family;
}

Family falcon() {
  Family family = plain_decoder("falcon", Blocks::parallel, Positions::rotary,
                                {.hidden = "ffn_hidden_size",
                                 .activation = "activation",
                                 .block_dropout = "hidden_dropout",
                                 .bias = "bias"},
                                {});
  family.four_widths = true;
  return family;
}

Family gpt_neox() {
  Family family =
      plain_decoder("gpt_neox", Blocks::parallel_two, Positions::rotary,
                    {.block_dropout = "hidden_dropout", .embedding_dropout = "hidden_dropout"}, kAll);
  family.tied = false;
  return family;
}

Family phi() {
  Family family =
      plain_decoder("phi", Blocks::parallel, Positions::rotary,
                    {.block_dropout = "resid_pdrop", .embedding_dropout = "embd_pdrop"}, kEncoder);
  family.tied = false;
  family.grouped = true;
  return family;
}

Family starcoder2() {
  Family family = plain_decoder(
      "starcoder2", Blocks::before, Positions::rotary,
      {.block_dropout = "residual_dropout", .embedding_dropout = "embedding_dropout", .bias = "use_bias"},
      kAll);
  family.grouped = true;
  return family;
}

Family distilbert() {
  Family family = encoder("distilbert", 0);
  family.keys = {.width = "dim",
                 .layers = "n_layers",
                 .heads = "n_heads",
                 .hidden = "hidden_dim",
                 .activation = "activation",
                 .block_dropout = "dropout",
                 .embedding_dropout = "dropout"};
  return family;
}

Family vit() {
  Family family = encoder("vit", 0);
  family.kind = Family::Kind::image;
  family.blocks = Blocks::before;
  return family;
}

Family dinov2() {
  Family family = vit();
  family.model_type = "dinov2";
  family.keys.hidden = "";
  family.four_widths = true;
  family.layer_scale = true;
  return family;
}

Family olmo() {
  Family family{.model_type = "olmo", .norm = Family::Norm::plain_layer};
  family.attention_bias_key = true;
  return family;
}

Family other(std::string_view model_type, Family::Kind kind, Family::Norm norm, bool tied) {
  return {.model_type = model_type, .kind = kind, .norm = norm, .tied = tied};
}

Family llama() {
  return {.model_type = "llama", .attention_bias_key = true};
}

Family qwen3(std::string_view model_type) {
  return {.model_type = model_type, .query_norm = Family::QueryNorm::head, .attention_bias_key = true};
}

Family qwen3_moe() {
  Family family = qwen3("qwen3_moe");
  family.experts_key = "num_experts";
  family.expert_hidden_key = "moe_intermediate_size";
  return family;
}

Family qwen2_moe() {
  Family family{.model_type = "qwen2_moe", .biases = {.qkv = true}, .experts_key = "num_experts"};
  family.expert_hidden_key = "moe_intermediate_size";
  family.shared_expert = true;
  return family;
}

Family deepseek(std::string_view model_type) {
  Family family{.model_type = model_type, .grouped = false, .experts_key = "n_routed_experts"};
  family.expert_hidden_key = "moe_intermediate_size";
  family.latent = true;
  return family;
}

Family gemma(std::string_view model_type, Blocks blocks, Family::QueryNorm query_norm) {
  Family family{.model_type = model_type, .blocks = blocks, .query_norm = query_norm, .keys = kStandard};
  family.keys.activation = model_type == "gemma" ? "hidden_act" : "hidden_activation";
  family.tied = true;
  family.attention_bias_key = true;
  return family;
}

}  // namespace

const std::vector<HuggingFaceFamily>& hugging_face_families() {
  static const std::vector<Family> families{
      gpt2(),
      llama(),
      {.model_type = "mistral"},
      {.model_type = "mixtral", .experts_key = "num_local_experts"},
      encoder("bert", 0),
      vit(),
      {.model_type = "qwen2", .biases = {.qkv = true}},
      qwen3("qwen3"),
      qwen3_moe(),
      qwen2_moe(),
      deepseek("deepseek_v2"),
      deepseek("deepseek_v3"),
      gemma("gemma", Blocks::before, Family::QueryNorm::none),
      gemma("gemma2", Blocks::both_sides, Family::QueryNorm::none),
      gemma("gemma3_text", Blocks::both_sides, Family::QueryNorm::head),
      {.model_type = "phi3", .keys = {.block_dropout = "resid_pdrop", .embedding_dropout = "embd_pdrop"}},
      {.model_type = "olmo2", .blocks = Blocks::after, .query_norm = Family::QueryNorm::all},
      phi(),
      starcoder2(),
      falcon(),
      opt(),
      bloom(),
      gpt_neox(),
      encoder("roberta", 2),
      encoder("xlm-roberta", 2),
      encoder("camembert", 2),
      encoder("electra", 0),
      distilbert(),
      olmo(),
      dinov2(),
      other("t5", Family::Kind::encoder_decoder, Family::Norm::rms, true),
      other("mt5", Family::Kind::encoder_decoder, Family::Norm::rms, false),
      other("whisper", Family::Kind::encoder_decoder, Family::Norm::layer, true),
      other("swin", Family::Kind::image_stages, Family::Norm::layer, false),
      other("convnext", Family::Kind::image_stages, Family::Norm::layer, false),
      other("mamba2", Family::Kind::state_space, Family::Norm::rms, false)};
  return families;
}

}  // namespace stepcast
