#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "models/cost/cost.hpp"
#include "models/cost/memory.hpp"
#include "models/hugging_face/network_text.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

/// A configuration of a text network, with further keys behind the usual ones.
std::string config(const std::string& model_type, int layers, int width, int heads, int hidden,
                   int vocabulary, const std::string& more) {
  return fmt::format(
      R"({{"model_type": "{}", "num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {}, "intermediate_size": {}, "vocab_size": {}{}{}}})",
      model_type, layers, width, heads, hidden, vocabulary, more.empty() ? "" : ", ", more);
}

std::string text_of(const std::string& json) {
  const YamlNode node = parse_yaml(json, "config.json");
  return network_text(read_hugging_face_config(YamlValue(node, "")), "net", 128);
}

std::string t5(int width, int hidden, int layers, int heads, int vocabulary, const std::string& more) {
  return fmt::format(
      R"({{"model_type": "t5", "d_model": {}, "d_ff": {}, "num_layers": {}, "num_heads": {}, "vocab_size": {}, "d_kv": 64, "is_encoder_decoder": true, "architectures": ["T5ForConditionalGeneration"], {}}})",
      width, hidden, layers, heads, vocabulary, more);
}

std::string whisper(int width, int encoders, int decoders, int heads, int vocabulary, int bands) {
  return fmt::format(
      R"({{"model_type": "whisper", "d_model": {0}, "encoder_layers": {1}, "decoder_layers": {2}, "encoder_attention_heads": {3}, "decoder_attention_heads": {3}, "encoder_ffn_dim": {4}, "decoder_ffn_dim": {4}, "vocab_size": {5}, "num_mel_bins": {6}, "max_source_positions": 1500, "max_target_positions": 448, "is_encoder_decoder": true, "architectures": ["WhisperForConditionalGeneration"]}})",
      width, encoders, decoders, heads, 4 * width, vocabulary, bands);
}

std::string swin(int width, const std::string& depths, const std::string& heads, int window, int image) {
  return fmt::format(
      R"({{"model_type": "swin", "embed_dim": {}, "depths": {}, "num_heads": {}, "window_size": {}, "image_size": {}, "num_labels": 1000, "architectures": ["SwinForImageClassification"]}})",
      width, depths, heads, window, image);
}

std::string convnext(const std::string& widths, const std::string& depths) {
  return fmt::format(
      R"({{"model_type": "convnext", "hidden_sizes": {}, "depths": {}, "image_size": 224, "num_labels": 1000}})",
      widths, depths);
}

std::string dinov2(int width, int layers, int heads, const std::string& gated) {
  return fmt::format(
      R"({{"model_type": "dinov2", "hidden_size": {}, "num_hidden_layers": {}, "num_attention_heads": {}, "use_swiglu_ffn": {}, "image_size": 518, "patch_size": 14, "num_channels": 3, "mlp_ratio": 4, "num_labels": 1000, "architectures": ["Dinov2ForImageClassification"]}})",
      width, layers, heads, gated);
}

std::string mamba2(int width, int layers, int heads, int vocabulary, const std::string& more) {
  return fmt::format(
      R"({{"model_type": "mamba2", "hidden_size": {}, "num_hidden_layers": {}, "num_heads": {}, "head_dim": 64, "state_size": 128, "vocab_size": {}, "architectures": ["Mamba2ForCausalLM"], {}}})",
      width, layers, heads, vocabulary, more);
}

struct Published {
  std::string name, json;
  std::int64_t parameters;
};

// The keys of public configurations that make the network. Sources of the numbers: the safetensors totals
// that the model pages on huggingface.co state (each shared array once), noted from memory and not read
// again. Those of ELECTRA, Qwen2-57B-A14B and DeepSeek-V3 (less the page's 14,848 biases of routing, which
// have no gradient, and its multi-token prediction) are computed from the definitions of their layers in the
// transformers library; so are T5, OLMo and Mamba 2 (modeling_t5.py, modeling_olmo.py, modeling_mamba2.py).
// Swin and ConvNeXt have the numbers of torchvision's swin_transformer.py and convnext.py. Public programs
// that count loaded weights print 37,760,640 for whisper-tiny, of which 37,184,640 are trained, and
// 86,580,480 for dinov2-base without classes.
std::vector<Published> published() {
  return {
      {"Llama-2-7b", config("llama", 32, 4096, 32, 11008, 32000, R"()"), 6'738'415'616},
      {"Llama-2-13b", config("llama", 40, 5120, 40, 13824, 32000, R"()"), 13'015'864'320},
      {"Llama-3.1-8B", config("llama", 32, 4096, 32, 14336, 128256, R"("num_key_value_heads": 8)"),
       8'030'261'248},
      {"Llama-3.1-70B", config("llama", 80, 8192, 64, 28672, 128256, R"("num_key_value_heads": 8)"),
       70'553'706'496},
      {"Llama-3.1-405B", config("llama", 126, 16384, 128, 53248, 128256, R"("num_key_value_heads": 8)"),
       405'853'388'800},
      {"TinyLlama-1.1B", config("llama", 22, 2048, 32, 5632, 32000, R"("num_key_value_heads": 4)"),
       1'100'048'384},
      {"SmolLM2-135M",
       config("llama", 30, 576, 9, 1536, 49152, R"("num_key_value_heads": 3, "tie_word_embeddings": true)"),
       134'515'008},
      {"Yi-6B", config("llama", 32, 4096, 32, 11008, 64000, R"("num_key_value_heads": 4)"), 6'061'035'520},
      {"Mistral-Nemo-12B",
       config("mistral", 40, 5120, 32, 14336, 131072, R"("num_key_value_heads": 8, "head_dim": 128)"),
       12'247'782'400},
      {"Mixtral-8x22B",
       config("mixtral", 56, 6144, 48, 16384, 32768,
              R"("num_key_value_heads": 8, "num_local_experts": 8, "num_experts_per_tok": 2)"),
       140'630'071'296},
      {"Qwen2.5-72B", config("qwen2", 80, 8192, 64, 29568, 152064, R"("num_key_value_heads": 8)"),
       72'706'203'648},
      {"Qwen2.5-1.5B",
       config("qwen2", 28, 1536, 12, 8960, 151936,
              R"("num_key_value_heads": 2, "tie_word_embeddings": true)"),
       1'543'714'304},
      {"Qwen1.5-MoE-A2.7B",
       config(
           "qwen2_moe", 24, 2048, 16, 5632, 151936,
           R"("num_key_value_heads": 16, "num_experts": 60, "num_experts_per_tok": 4, "moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632, "decoder_sparse_step": 1)"),
       14'315'784'192},
      {"Qwen2-57B-A14B",
       config(
           "qwen2_moe", 28, 3584, 28, 18944, 151936,
           R"("num_key_value_heads": 4, "num_experts": 64, "num_experts_per_tok": 8, "moe_intermediate_size": 2560, "shared_expert_intermediate_size": 20480, "decoder_sparse_step": 1)"),
       57'408'658'944},
      {"Qwen3-32B",
       config("qwen3", 64, 5120, 64, 25600, 151936, R"("num_key_value_heads": 8, "head_dim": 128)"),
       32'762'123'264},
      {"Qwen3-235B-A22B",
       config(
           "qwen3_moe", 94, 4096, 64, 12288, 151936,
           R"("num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 1536)"),
       235'093'634'560},
      {"gemma-7b",
       config("gemma", 28, 3072, 16, 24576, 256000, R"("num_key_value_heads": 16, "head_dim": 256)"),
       8'537'680'896},
      {"gemma-2-9b",
       config("gemma2", 42, 3584, 16, 14336, 256000, R"("num_key_value_heads": 8, "head_dim": 256)"),
       9'241'705'984},
      {"gemma-2-27b",
       config("gemma2", 46, 4608, 32, 36864, 256000, R"("num_key_value_heads": 16, "head_dim": 128)"),
       27'227'128'320},
      {"Phi-3-medium", config("phi3", 40, 5120, 40, 17920, 32064, R"("num_key_value_heads": 10)"),
       13'960'238'080},
      {"phi-1_5",
       config("phi", 24, 2048, 32, 8192, 51200, R"("num_key_value_heads": 32, "hidden_act": "gelu_new")"),
       1'418'270'720},
      {"OLMo-2-7B", config("olmo2", 32, 4096, 32, 11008, 100352, R"("num_key_value_heads": 32)"),
       7'298'617'344},
      {"OLMo-2-13B", config("olmo2", 40, 5120, 40, 13824, 100352, R"("num_key_value_heads": 40)"),
       13'716'198'400},
      {"starcoder2-7b",
       config("starcoder2", 32, 4608, 36, 18432, 49152, R"("num_key_value_heads": 4, "use_bias": true)"),
       7'173'923'840},
      {"falcon-40b",
       config("falcon", 60, 8192, 128, 32768, 65024,
              R"("bias": false, "new_decoder_architecture": true, "num_kv_heads": 8, "parallel_attn": true)"),
       41'303'293'952},
      {"opt-1.3b",
       config(
           "opt", 24, 2048, 32, 8192, 50272,
           R"("ffn_dim": 8192, "max_position_embeddings": 2048, "word_embed_proj_dim": 2048, "activation_function": "relu")"),
       1'315'758'080},
      {"opt-6.7b",
       config(
           "opt", 32, 4096, 32, 16384, 50272,
           R"("ffn_dim": 16384, "max_position_embeddings": 2048, "word_embed_proj_dim": 4096, "activation_function": "relu")"),
       6'658'473'984},
      {"bloom-7b1", config("bloom", 30, 4096, 32, 16384, 250880, R"("n_layer": 30, "n_head": 32)"),
       7'069'016'064},
      {"bloom-176b", config("bloom", 70, 14336, 112, 57344, 250880, R"("n_layer": 70, "n_head": 112)"),
       176'247'271'424},
      {"pythia-1b",
       config("gpt_neox", 16, 2048, 8, 8192, 50304,
              R"("hidden_act": "gelu", "max_position_embeddings": 2048)"),
       1'011'781'632},
      {"gpt-neox-20b",
       config("gpt_neox", 44, 6144, 64, 24576, 50432,
              R"("hidden_act": "gelu", "max_position_embeddings": 2048)"),
       20'554'567'680},
      {"gpt2-medium",
       R"({"model_type": "gpt2", "n_layer": 24, "n_embd": 1024, "n_head": 16, "n_positions": 1024, "vocab_size": 50257})",
       354'823'168},
      {"gpt2-xl",
       R"({"model_type": "gpt2", "n_layer": 48, "n_embd": 1600, "n_head": 25, "n_positions": 1024, "vocab_size": 50257})",
       1'557'611'200},
      {"bert-large-uncased",
       config(
           "bert", 24, 1024, 16, 4096, 30522,
           R"("max_position_embeddings": 512, "type_vocab_size": 2, "architectures": ["BertForMaskedLM"])"),
       335'174'458},
      {"bert-base-cased",
       config(
           "bert", 12, 768, 12, 3072, 28996,
           R"("max_position_embeddings": 512, "type_vocab_size": 2, "architectures": ["BertForMaskedLM"])"),
       108'340'804},
      {"roberta-large",
       config(
           "roberta", 24, 1024, 16, 4096, 50265,
           R"("max_position_embeddings": 514, "type_vocab_size": 1, "architectures": ["RobertaForMaskedLM"])"),
       355'412'057},
      {"xlm-roberta-base",
       config(
           "xlm-roberta", 12, 768, 12, 3072, 250002,
           R"("max_position_embeddings": 514, "type_vocab_size": 1, "architectures": ["XLMRobertaForMaskedLM"])"),
       278'295'186},
      {"electra-base-discriminator",
       config(
           "electra", 12, 768, 12, 3072, 30522,
           R"("embedding_size": 768, "max_position_embeddings": 512, "type_vocab_size": 2, "architectures": ["ElectraForPreTraining"])"),
       109'483'009},
      {"electra-small-discriminator",
       config(
           "electra", 12, 256, 4, 1024, 30522,
           R"("embedding_size": 128, "max_position_embeddings": 512, "type_vocab_size": 2, "architectures": ["ElectraForPreTraining"])"),
       13'549'057},
      {"electra-small-generator",
       config(
           "electra", 12, 256, 4, 1024, 30522,
           R"("embedding_size": 128, "max_position_embeddings": 512, "type_vocab_size": 2, "architectures": ["ElectraForMaskedLM"])"),
       13'546'682},
      {"vit-large-patch16-224",
       R"({"model_type": "vit", "num_hidden_layers": 24, "hidden_size": 1024, "num_attention_heads": 16, "intermediate_size": 4096, "image_size": 224, "patch_size": 16, "num_channels": 3, "num_labels": 1000})",
       304'326'632},
      {"vit-base-patch32-384",
       R"({"model_type": "vit", "num_hidden_layers": 12, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072, "image_size": 384, "patch_size": 32, "num_channels": 3, "num_labels": 1000})",
       88'297'192},
      {"DeepSeek-V2-Lite",
       config(
           "deepseek_v2", 27, 2048, 16, 10944, 102400,
           R"("num_key_value_heads": 16, "first_k_dense_replace": 1, "kv_lora_rank": 512, "q_lora_rank": null, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_layer_freq": 1)"),
       15'706'484'224},
      {"DeepSeek-V2",
       config(
           "deepseek_v2", 60, 5120, 128, 12288, 102400,
           R"("num_key_value_heads": 128, "first_k_dense_replace": 1, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "moe_intermediate_size": 1536, "n_routed_experts": 160, "n_shared_experts": 2, "num_experts_per_tok": 6, "moe_layer_freq": 1)"),
       235'741'434'880},
      {"OLMo-1B",
       config("olmo", 16, 2048, 16, 8192, 50304, R"("tie_word_embeddings": true, "clip_qkv": null)"),
       1'176'764'416},
      {"OLMo-7B", config("olmo", 32, 4096, 32, 11008, 50304, R"("clip_qkv": 8.0)"), 6'888'095'744},
      {"t5-small", t5(512, 2048, 6, 8, 32128, R"("n_positions": 512)"), 60'506'624},
      {"t5-large", t5(1024, 4096, 24, 16, 32128, R"("n_positions": 512)"), 737'668'096},
      {"flan-t5-base",
       t5(768, 2048, 12, 12, 32128, R"("feed_forward_proj": "gated-gelu", "tie_word_embeddings": false)"),
       247'577'856},
      {"flan-t5-xl",
       t5(2048, 5120, 24, 32, 32128, R"("feed_forward_proj": "gated-gelu", "tie_word_embeddings": false)"),
       2'849'757'184},
      {"mt5-small",
       R"({"model_type": "mt5", "d_model": 512, "d_ff": 1024, "d_kv": 64, "num_layers": 8, "num_heads": 6, "vocab_size": 250112, "is_encoder_decoder": true, "architectures": ["MT5ForConditionalGeneration"]})",
       300'176'768},
      {"whisper-tiny", whisper(384, 4, 4, 6, 51865, 80), 37'760'640},
      {"whisper-small", whisper(768, 12, 12, 12, 51865, 80), 241'734'912},
      {"whisper-large-v3", whisper(1280, 32, 32, 20, 51866, 128), 1'543'490'560},
      {"whisper-large-v3-turbo", whisper(1280, 32, 4, 20, 51866, 128), 808'878'080},
      {"swin-tiny-patch4-window7-224", swin(96, "[2, 2, 6, 2]", "[3, 6, 12, 24]", 7, 224), 28'288'354},
      {"swin-base-patch4-window7-224", swin(128, "[2, 2, 18, 2]", "[4, 8, 16, 32]", 7, 224), 87'768'224},
      {"swin-base-patch4-window12-384", swin(128, "[2, 2, 18, 2]", "[4, 8, 16, 32]", 12, 384), 87'903'584},
      {"convnext-tiny-224", convnext("[96, 192, 384, 768]", "[3, 3, 9, 3]"), 28'589'128},
      {"convnext-large-224", convnext("[192, 384, 768, 1536]", "[3, 3, 27, 3]"), 197'767'336},
      {"dinov2-base-imagenet1k-1-layer", dinov2(768, 12, 12, "false"), 86'580'480 + 1537 * 1000},
      {"dinov2-giant-imagenet1k-1-layer", dinov2(1536, 40, 24, "true"), 1'136'480'768 + 3073 * 1000},
      {"Mamba-Codestral-7B", mamba2(4096, 64, 128, 32768, R"("n_groups": 8, "tie_word_embeddings": false)"),
       7'285'403'648},
      {"mamba2-130m", mamba2(768, 24, 24, 50288, R"("n_groups": 1, "tie_word_embeddings": true)"),
       128'989'632},
      {"DeepSeek-V3",
       config(
           "deepseek_v3", 61, 7168, 128, 18432, 129280,
           R"("num_key_value_heads": 128, "first_k_dense_replace": 3, "kv_lora_rank": 512, "q_lora_rank": 1536, "qk_nope_head_dim": 128, "qk_rope_head_dim": 64, "v_head_dim": 128, "moe_intermediate_size": 2048, "n_routed_experts": 256, "n_shared_experts": 1, "num_experts_per_tok": 8, "moe_layer_freq": 1, "num_nextn_predict_layers": 1, "quantization_config": {"quant_method": "fp8"})"),
       671'026'404'352},
  };
}

}  // namespace

TEST_CASE("public configurations have exactly their networks' parameters", "[models]") {
  const std::vector<Published> all = published();
  CHECK(all.size() >= 40);
  for (const Published& one : all) {
    CAPTURE(one.name);
    CHECK(all_parameters(model_of(text_of(one.json))) == one.parameters);
  }
}

TEST_CASE("configurations with all their keys are read, and none of them is named as unread", "[models]") {
  struct Whole {
    std::string json;
    std::int64_t parameters;
  };
  // The keys of bigscience/bloom-560m, which names its sizes otherwise than the library, microsoft's
  // Phi-3-mini-4k-instruct, tiiuae/falcon-7b, facebook/opt-125m and distilbert-base-uncased on
  // huggingface.co, as public programs quote them. Their pages state 559,214,592, 3,821,079,552,
  // 6,921,720,704, 125,239,296 and 66,985,530.
  const auto whole = GENERATE(values<Whole>(
      {{R"({"apply_residual_connection_post_layernorm": false, "attention_dropout": 0.0, "attention_softmax_in_fp32": true,
           "architectures": ["BloomForCausalLM"], "bias_dropout_fusion": true, "bos_token_id": 1, "eos_token_id": 2,
           "pad_token_id": 3, "unk_token_id": 0, "hidden_dropout": 0.0, "initializer_range": 0.02,
           "layer_norm_epsilon": 1e-05, "masked_softmax_fusion": true, "model_type": "bloom", "n_embed": 1024,
           "n_inner": null, "n_layer": 24, "num_attention_heads": 16, "offset_alibi": 100, "pretraining_tp": 1,
           "seq_length": 2048, "skip_bias_add": true, "skip_bias_add_qkv": false, "transformers_version": "4.20.0",
           "use_cache": true, "vocab_size": 250880})",
        559'214'592},
       {R"({"_name_or_path": "Phi-3-mini-4k-instruct", "architectures": ["Phi3ForCausalLM"], "attention_dropout": 0.0,
           "auto_map": {"AutoModelForCausalLM": "modeling_phi3.Phi3ForCausalLM"}, "bos_token_id": 1, "embd_pdrop": 0.0,
           "eos_token_id": 32000, "hidden_act": "silu", "hidden_size": 3072, "initializer_range": 0.02,
           "intermediate_size": 8192, "max_position_embeddings": 4096, "model_type": "phi3", "num_attention_heads": 32,
           "num_hidden_layers": 32, "num_key_value_heads": 32, "original_max_position_embeddings": 4096,
           "pad_token_id": 32000, "resid_pdrop": 0.0, "rms_norm_eps": 1e-05, "rope_scaling": null, "rope_theta": 10000.0,
           "sliding_window": 2047, "tie_word_embeddings": false, "torch_dtype": "bfloat16",
           "transformers_version": "4.40.2", "use_cache": true, "attention_bias": false, "vocab_size": 32064})",
        3'821'079'552},
       {R"({"alibi": false, "apply_residual_connection_post_layernorm": false, "architectures": ["FalconForCausalLM"],
           "attention_dropout": 0.0, "auto_map": {"AutoModelForCausalLM": "modeling_falcon.FalconForCausalLM"},
           "bias": false, "bos_token_id": 11, "eos_token_id": 11, "hidden_dropout": 0.0, "hidden_size": 4544,
           "initializer_range": 0.02, "layer_norm_epsilon": 1e-05, "model_type": "falcon", "multi_query": true,
           "new_decoder_architecture": false, "num_attention_heads": 71, "num_hidden_layers": 32, "num_kv_heads": 71,
           "parallel_attn": true, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 65024})",
        6'921'720'704},
       {R"({"_remove_final_layer_norm": false, "activation_dropout": 0.0, "activation_function": "relu",
           "architectures": ["OPTForCausalLM"], "attention_dropout": 0.0, "bos_token_id": 2, "do_layer_norm_before": true,
           "dropout": 0.1, "enable_bias": true, "eos_token_id": 2, "ffn_dim": 3072, "hidden_size": 768, "init_std": 0.02,
           "layer_norm_elementwise_affine": true, "layerdrop": 0.0, "max_position_embeddings": 2048, "model_type": "opt",
           "num_attention_heads": 12, "num_hidden_layers": 12, "pad_token_id": 1, "prefix": "</s>",
           "torch_dtype": "float16", "use_cache": true, "vocab_size": 50272, "word_embed_proj_dim": 768})",
        125'239'296},
       {R"({"activation": "gelu", "architectures": ["DistilBertForMaskedLM"], "attention_dropout": 0.1, "dim": 768,
           "dropout": 0.1, "hidden_dim": 3072, "initializer_range": 0.02, "max_position_embeddings": 512,
           "model_type": "distilbert", "n_heads": 12, "n_layers": 6, "pad_token_id": 0, "qa_dropout": 0.1,
           "seq_classif_dropout": 0.2, "sinusoidal_pos_embds": false, "tie_weights_": true, "vocab_size": 30522})",
        66'985'530}}));
  const YamlNode node = parse_yaml(whole.json, "config.json");
  const HuggingFaceConfig config = read_hugging_face_config(YamlValue(node, ""));
  CHECK(config.unread == std::vector<std::string>{});
  CHECK(all_parameters(model_of(network_text(config, "net", 128))) == whole.parameters);
}

TEST_CASE("keys that nothing reads are named in the file, unless they are off or without effect",
          "[models]") {
  const auto source = [](const std::string& more) {
    return model_of(text_of(config("llama", 1, 64, 4, 128, 100, more))).source;
  };
  CHECK_THAT(source(R"("attn_output_gate": true, "altup_width": 3, "rope_theta": 1e4, "num_experts_off": 0)"),
             Catch::Matchers::EndsWith("; keys that are not read: attn_output_gate, altup_width"));
  CHECK_THAT(source(R"("eos_token_id": 2, "use_cache": true, "future": null, "other": [])"),
             !Catch::Matchers::Contains("not read"));
}

TEST_CASE("public configurations of other networks are refused by name", "[models][errors]") {
  for (const std::string name :
       {"bart", "convnextv2", "dinov2_with_registers", "swinv2", "mamba", "albert", "xlnet", "clip"}) {
    CHECK_THROWS_WITH(text_of(config(name, 12, 768, 12, 3072, 32128, "")),
                      Catch::Matchers::Contains("got \"" + name + "\""));
  }
  const auto opt_350m =
      config("opt", 24, 1024, 16, 4096, 50272,
             R"("ffn_dim": 4096, "max_position_embeddings": 2048, "word_embed_proj_dim": 512,
                                  "do_layer_norm_before": false, "activation_function": "relu")");
  CHECK_THROWS_WITH(text_of(opt_350m), Catch::Matchers::Contains("do_layer_norm_before: expected true"));
  const auto opt_bare = config(
      "opt", 2, 64, 4, 128, 100,
      R"("ffn_dim": 128, "max_position_embeddings": 64, "activation_function": "relu", "enable_bias": false)");
  CHECK_THROWS_WITH(text_of(opt_bare), Catch::Matchers::Contains("enable_bias: expected true"));
}

TEST_CASE("keys that change a network are read or refused", "[models][errors]") {
  const auto refused = [](const std::string& family, const std::string& more, const std::string& why) {
    CHECK_THROWS_WITH(text_of(config(family, 2, 64, 4, 128, 100, more)), Catch::Matchers::Contains(why));
  };
  refused("mistral", R"("attention_bias": true)", "attention_bias: expected false");
  refused("mistral", R"("architectures": ["MixtralForCausalLM"])",
          "architectures[0]: expected a network of mistral");
  refused("qwen2", R"("architectures": ["Qwen2MoeForCausalLM"])",
          "architectures[0]: expected a network of qwen2");
  refused("llama", R"("auto_map": {"AutoModel": "mine.Model"})", "auto_map: the network is code of its own");
  refused("qwen3", R"("layer_types": ["full_attention", "linear_attention"])",
          "layer_types[1]: expected one of");
  refused("starcoder2", R"("mlp_type": "gated")", "mlp_type: expected default");
  refused("qwen2", R"("mlp_bias": true)", "mlp_bias: expected false");
  refused("falcon", R"("num_key_value_heads": 2)", "num_key_value_heads: expected 4, the heads of queries");
  refused("llama", R"("pruned_heads": {"0": [1]})", "pruned_heads: expected no heads that are left out");
  refused("llama", R"("problem_type": "regression")", "problem_type");
  refused("llama", R"("moe_layer_freq": 2)", "moe_layer_freq: expected 1");
  refused("qwen3_moe", R"("num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8,
                          "shared_expert_intermediate_size": 8)",
          "shared_expert_intermediate_size: expected 0");
  const std::string latent =
      R"("n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8, "kv_lora_rank": 16,
         "qk_nope_head_dim": 16, "qk_rope_head_dim": 8, )";
  refused("deepseek_v3", latent + R"("v_head_dim": 16, "attention_bias": true)", "attention_bias");
  refused("deepseek_v3", latent + R"("v_head_dim": 16, "quantization_config": {"quant_method": "awq"})",
          "quantized");
}

TEST_CASE("keys of two stacks, stages and state spaces are read or refused", "[models][errors]") {
  const auto edited = [](std::string text, const std::string& right, const std::string& wrong) {
    return text.replace(text.find(right), right.size(), wrong);
  };
  const auto refused = [&](const std::string& json, const std::string& why) {
    CHECK_THROWS_WITH(text_of(json), Catch::Matchers::Contains(why));
  };
  const std::string small = t5(64, 128, 2, 4, 100, R"("n_positions": 64)");
  refused(edited(small, "\"is_encoder_decoder\": true", "\"is_encoder_decoder\": false"),
          "is_encoder_decoder: expected true");
  refused(edited(small, "ForConditionalGeneration", "EncoderModel"),
          "architectures[0]: expected a network with a loss: T5ForConditionalGeneration");
  refused(edited(small, "64}", "64, \"feed_forward_proj\": \"gated-relu\"}"),
          "feed_forward_proj: expected relu");
  refused(edited(swin(96, "[2, 2]", "[3, 6]", 7, 224), "\"window_size\": 7", "\"window_size\": 8"),
          "window_size: a map of 28 x 28 is padded to windows of 8 x 8, which is not modelled");
  refused(swin(96, "[2, 2]", "[3]", 7, 224), "num_heads: expected 2 integers, one for each stage, got 1");
  refused(edited(swin(96, "[2, 2]", "[3, 6]", 7, 224), "ForImage", "ForMaskedImage"),
          "SwinForImageClassification");
  refused(edited(convnext("[96, 192, 384, 768]", "[1, 1, 1, 1]"), "224", "200"), "image_size: a map of");
  refused(edited(mamba2(64, 2, 2, 100, R"("n_groups": 1)"), "\"head_dim\": 64", "\"head_dim\": 32"),
          "head_dim: expected 128 features divided by 2 heads, got 32");
  refused(mamba2(64, 2, 2, 100, R"("n_groups": 1, "rms_norm": false)"), "rms_norm: expected true");
  CHECK_THAT(text_of(config("olmo", 1, 64, 4, 128, 100, R"("clip_qkv": 8.0)")),
             Catch::Matchers::Contains("queries, keys and values are not clipped"));
}

TEST_CASE("Swin copies its map into windows and back, and every second block shifts it", "[models]") {
  const Model model = model_of(text_of(swin(96, "[2, 3, 6, 2]", "[3, 6, 12, 24]", 7, 224)));
  int copies = 0;
  for (const Layer& layer : model.layers) copies += layer.kind == LayerKind::up_sample ? 1 : 0;
  // Two for each of 11 blocks and two more for five shifted ones; one before each of three stages; the map of
  // the last stage is one window.
  CHECK(copies == 2 * 11 + 2 * 5 + 3);
  CHECK(layer_named(model, "stage1_last0_attention").keys == 49);
  CHECK(layer_named(model, "stage3_block0_attention").keys == 0);
}

TEST_CASE("networks of images have the published work of one image", "[models]") {
  // Multiply-adds of one image in torchvision's swin_transformer.py and convnext.py (`_ops`, 1e9).
  const auto work = [](const std::string& json) {
    return forward_flops(model_of(text_of(json))).value / 2e9;
  };
  CHECK(work(swin(96, "[2, 2, 6, 2]", "[3, 6, 12, 24]", 7, 224)) == Approx(4.491).epsilon(0.01));
  CHECK(work(convnext("[96, 192, 384, 768]", "[3, 3, 9, 3]")) == Approx(4.456).epsilon(0.001));
}

TEST_CASE("networks of images save as much for the backward pass as PyTorch does", "[models]") {
  // MB of one image in fp32, counted by saved_tensors_hooks of PyTorch 1.13 on the same layers written out.
  const auto saved = [](const std::string& json) {
    MemoryOptions options;
    options.framework = MemoryOptions::Framework::pytorch;
    options.batch = 64;  // so that the peak is where all of them are held
    return training_memory(model_of(text_of(json)), options).activations.value / 64e6;
  };
  CHECK(saved(convnext("[96, 192, 384, 768]", "[3, 3, 9, 3]")) == Approx(108.7).epsilon(0.02));
  CHECK(saved(swin(96, "[2, 2, 6, 2]", "[3, 6, 12, 24]", 7, 224)) == Approx(106.4).epsilon(0.03));
}
