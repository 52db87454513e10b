#include "models/hugging_face/network_text.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "models/cost/cost.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

HuggingFaceConfig config_of(const std::string& json) {
  const YamlNode node = parse_yaml(json, "config.json");
  return read_hugging_face_config(YamlValue(node, ""));
}

Model imported(const std::string& json, std::int64_t sequence = 0) {
  return model_of(network_text(config_of(json), "my-net", sequence));
}

// The keys of config.json on Hugging Face that matter here, some that do not, and JSON's forms.
const std::string kGpt2 = R"({
	"_name_or_path": "gpt2", "activation_function":"gelu_new","architectures":["GPT2LMHeadModel"],
  "attn_pdrop": 0.1, "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768,
  "n_head": 12, "n_inner": null, "n_layer": 12, "n_positions": 1024, "vocab_size": 50257,
  "task_specific_params": {"text-generation": {"do_sample": true, "max_length": 50}}
})";
const std::string kLlama = R"({
  "_name_or_path": "meta-llama/Llama-2-70b-hf", "architectures": ["LlamaForCausalLM"], "bos_token_id": 1,
  "hidden_act": "silu", "hidden_size": 8192, "intermediate_size": 28672, "max_position_embeddings": 4096,
  "model_type": "llama", "num_attention_heads": 64, "num_hidden_layers": 80, "num_key_value_heads": 8,
  "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": null, "tie_word_embeddings": false,
  "torch_dtype": "float16", "use_cache": true, "vocab_size": 32000
})";
const std::string kMistral = R"({
  "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768,
  "model_type": "mistral", "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8,
  "sliding_window": 4096, "tie_word_embeddings": false, "vocab_size": 32000
})";
const std::string kMixtral = R"({
  "hidden_act": "silu", "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768,
  "model_type": "mixtral", "num_attention_heads": 32, "num_experts_per_tok": 2, "num_hidden_layers": 32,
  "num_key_value_heads": 8, "num_local_experts": 8, "sliding_window": null, "tie_word_embeddings": false,
  "vocab_size": 32000
})";
const std::string kBert = R"({
  "architectures": ["BertForPreTraining"], "hidden_act": "gelu", "hidden_size": 768,
  "intermediate_size": 3072, "max_position_embeddings": 512, "model_type": "bert", "num_attention_heads": 12,
  "num_hidden_layers": 12, "type_vocab_size": 2, "vocab_size": 30522
})";
const std::string kVit = R"({
  "hidden_act": "gelu", "hidden_size": 768, "id2label": {"0": "tench", "1": "goldfish"}, "image_size": 224,
  "intermediate_size": 3072, "model_type": "vit", "num_attention_heads": 12, "num_channels": 3,
  "num_hidden_layers": 12, "patch_size": 16, "qkv_bias": true
})";

std::string edited(std::string text, const std::string& right, const std::string& wrong) {
  return text.replace(text.find(right), right.size(), wrong);
}

}  // namespace

TEST_CASE("imported networks have the published numbers of parameters", "[models]") {
  CHECK(trainable_parameters(imported(kGpt2)) == 124'439'808);
  CHECK(trainable_parameters(imported(kLlama)) == 68'976'648'192);
  CHECK(trainable_parameters(imported(kMistral)) ==
        7'241'732'096);  // model card of mistralai/Mistral-7B-v0.1
  CHECK(trainable_parameters(imported(kMixtral, 4096)) == 46'702'792'704);
  CHECK(trainable_parameters(imported(kBert)) == 110'106'428);
  // BertForMaskedLM of the transformers library: 109,514,298, without a pooler.
  CHECK(trainable_parameters(imported(edited(kBert, "PreTraining", "MaskedLM"))) == 109'514'298);
  CHECK(trainable_parameters(imported(kVit)) == 86'567'656 - 998 * 769);  // two classes in place of 1,000
}

TEST_CASE("dropout of a configuration becomes layers, and a key of attention", "[models]") {
  const std::string rates =
      R"("attention_probs_dropout_prob": 0.1, "hidden_dropout_prob": 0.2, "hidden_act")";
  const Model bert = imported(edited(edited(kBert, "PreTraining", "MaskedLM"), "\"hidden_act\"", rates));
  CHECK(trainable_parameters(bert) == 109'514'298);
  CHECK(layer_named(bert, "block3_attention").coefficient == 0.1);
  CHECK(layer_named(bert, "block3_projection_dropout").coefficient == 0.2);
  CHECK(layer_named(bert, "embedding_dropout").kind == LayerKind::dropout);
  CHECK(bert.source.find("dropout") == std::string::npos);
  CHECK(imported(kBert).source.find("without dropout") != std::string::npos);
  CHECK(layer_named(imported(kGpt2), "block0_attention").coefficient == 0.1);  // attn_pdrop
  CHECK_THROWS_AS(imported(edited(kBert, "\"hidden_act\"", R"("hidden_dropout_prob": 1, "hidden_act")")),
                  InputError);
}

TEST_CASE("an imported network equals the one of the library", "[models]") {
  struct Case {
    std::string json, name;
    std::int64_t sequence;
  };
  const auto given = GENERATE(
      values<Case>({{kLlama, "llama2-70b", 0}, {kMixtral, "mixtral-8x7b", 4096}, {kBert, "bert-base", 0}}));
  const Model model = imported(given.json, given.sequence), shipped = shipped_model(given.name);
  REQUIRE(model.layers.size() == shipped.layers.size());
  for (std::size_t i = 0; i < model.layers.size(); ++i) {
    CHECK(model.layers[i].name == shipped.layers[i].name);
    CHECK(model.layers[i].output == shipped.layers[i].output);
  }
  CHECK(training_flops(model).value == training_flops(shipped).value);
}

TEST_CASE("the length of the samples is given, or the configuration's", "[models]") {
  CHECK(imported(kGpt2).input == Shape{1024});
  CHECK(imported(kGpt2, 128).input == Shape{128});
  CHECK(trainable_parameters(imported(kGpt2, 128)) == 124'439'808);
  CHECK(imported(kLlama, 8192).input == Shape{8192});  // rotary embeddings have no table
  CHECK(imported(kVit).input == Shape{3, 224, 224});
  CHECK_THROWS_WITH(imported(kGpt2, 1025),
                    "--sequence: expected at most the 1024 positions of the network, got 1025");
}

TEST_CASE("options of a configuration change the network", "[models]") {
  const Model plain = imported(kMistral);
  CHECK(trainable_parameters(
            imported(edited(kMistral, "\"tie_word_embeddings\": false", "\"tie_word_embeddings\": true"))) ==
        trainable_parameters(plain) - 32'000 * 4096);
  CHECK(trainable_parameters(
            imported(edited(kMistral, "\"hidden_act\"", "\"head_dim\": 64, \"hidden_act\""))) ==
        trainable_parameters(plain) - 32 * 64 * (32 + 2 * 8 + 32) * 4096);
  CHECK(trainable_parameters(imported(edited(kGpt2, "null", "100"))) ==
        124'439'808 - 12 * (3072 - 100) * (2 * 768 + 1));
  CHECK(layer_named(imported(edited(kGpt2, "gelu_new", "relu")), "block0_relu").kind == LayerKind::relu);
  CHECK(trainable_parameters(imported(edited(kVit, "\"qkv_bias\": true", "\"qkv_bias\": false"))) ==
        trainable_parameters(imported(kVit)) - 12 * 3 * 768);
  CHECK_THAT(plain.source, Catch::Matchers::Contains("the sliding window of 4096 tokens is not modelled"));
  CHECK_THAT(imported(kGpt2).source, Catch::Matchers::Contains("config.json of gpt2,"));
}

TEST_CASE("a configuration that does not fit is refused with its place", "[models][errors]") {
  struct Case {
    std::string json, right, wrong, message;
  };
  const auto edit = GENERATE(values<Case>({
      {kGpt2, "\"n_layer\": 12", "\"n_layers\": 12",
       "config.json:1:1: n_layer: missing (expected an integer >= 1)"},
      {kGpt2, "\"n_layer\": 12", "\"n_layer\": \"12\"",
       "config.json:4:45: n_layer: expected an integer from 1 to 1000 without quotes, got \"12\""},
      {kGpt2, "\"n_layer\": 12", "\"n_layer\": 1e99",
       "config.json:4:45: n_layer: expected an integer from 1 to 1000, got \"1e99\""},
      {kGpt2, "\"n_layer\": 12", "\"n_layer\": 99999999999999999999",
       "config.json:4:45: n_layer: expected an integer from 1 to 1000, got \"99999999999999999999\""},
      {kGpt2, "\"n_layer\": 12", "\"n_layer\": [12]",
       "config.json:4:45: n_layer: expected an integer from 1 to 1000, got a list"},
      {kGpt2, "\"n_head\": 12", "\"n_head\": 13",
       "config.json:3:98: n_embd: expected a multiple of 13 heads, got 768"},
      {kGpt2, "gelu_new", "gelu_old",
       "config.json:2:49: activation_function: expected one of gelu, gelu_new, gelu_fast, gelu_pytorch_tanh, "
       "relu, got \"gelu_old\""},
      {kGpt2, "\"gpt2\", \"n_ctx\"", "\"gpt3\", \"n_ctx\"",
       "config.json:3:65: model_type: expected one of gpt2, llama, mistral, mixtral, bert, vit, qwen2, "
       "qwen3, "
       "qwen3_moe, qwen2_moe, deepseek_v2, deepseek_v3, gemma, gemma2, gemma3_text, phi3, olmo2, phi, "
       "starcoder2, falcon, opt, bloom, gpt_neox, roberta, xlm-roberta, camembert, electra, distilbert, "
       "olmo, "
       "dinov2, t5, mt5, whisper, swin, convnext, mamba2, got \"gpt3\"; did you mean \"gpt2\"?"},
      {kLlama, "\"num_key_value_heads\": 8", "\"num_key_value_heads\": 7",
       "config.json:4:101: num_key_value_heads: expected a divisor of 64 heads, got 7"},
      {kLlama, "silu", "relu",
       "config.json:3:17: hidden_act: expected one of silu, got \"relu\"; did you mean \"silu\"?"},
      {kMixtral, "\"num_experts_per_tok\": 2", "\"num_experts_per_tok\": 9",
       "config.json:3:78: num_experts_per_tok: expected an integer from 1 to 8, got \"9\""},
      {kVit, "\"id2label\": {\"0\": \"tench\", \"1\": \"goldfish\"}, ", "",
       "config.json:1:1: num_labels: missing (expected the number of classes, or id2label)"},
      {kVit, "\"patch_size\": 16", "\"patch_size\": 225",
       "config.json:4:42: patch_size: expected an integer from 1 to 224, got \"225\""},
      {kBert, "\"num_hidden_layers\": 12", "\"num_hidden_layers\": 0",
       "config.json:4:24: num_hidden_layers: expected an integer from 1 to 1000, got \"0\""},
  }));
  CHECK_NOTHROW(imported(edit.json));
  CHECK_THROWS_WITH(imported(edited(edit.json, edit.right, edit.wrong)), edit.message);
}

TEST_CASE("text that is not a configuration is refused", "[models][errors]") {
  CHECK_THROWS_WITH(config_of("[1, 2]"), "config.json:1:1: expected a mapping, got a list");
  CHECK_THROWS_WITH(config_of("{}"),
                    "config.json:1:1: model_type: missing (expected the family of the network)");
  CHECK_THROWS_AS(config_of("{\"model_type\": \"gpt2\""), InputError);
  CHECK_THROWS_AS(config_of("{\"model_type\": \"gpt2\", \"model_type\": \"bert\"}"), InputError);
}

namespace {

/// A configuration of layers of equal width, with further keys.
std::string config_text(const std::string& model_type, int layers, int width, int heads, int hidden,
                        int vocabulary, const std::string& more) {
  return fmt::format(
      R"({{"model_type": "{}", "num_hidden_layers": {}, "hidden_size": {}, "num_attention_heads": {}, "intermediate_size": {}, "vocab_size": {}, {}}})",
      model_type, layers, width, heads, hidden, vocabulary, more);
}

}  // namespace

// Sources: the sizes of the configurations and of the weights (safetensors, each shared array once) that the
// model pages on huggingface.co state.
TEST_CASE("families have the numbers of parameters of their published networks", "[models]") {
  struct Published {
    std::string name, json;
    std::int64_t parameters;
  };
  const std::string gelu = R"("hidden_act": "gelu", "max_position_embeddings": 2048)";
  const auto published = GENERATE_COPY(values<Published>({
      {"Qwen2.5-0.5B",
       config_text("qwen2", 24, 896, 14, 4864, 151936,
                   R"("num_key_value_heads": 2, "tie_word_embeddings": true)"),
       494'032'768},
      {"Qwen2-7B", config_text("qwen2", 28, 3584, 28, 18944, 152064, R"("num_key_value_heads": 4)"),
       7'615'616'512},
      {"Qwen3-0.6B",
       config_text("qwen3", 28, 1024, 16, 3072, 151936,
                   R"("num_key_value_heads": 8, "head_dim": 128, "tie_word_embeddings": true)"),
       596'049'920},
      {"Qwen3-8B",
       config_text("qwen3", 36, 4096, 32, 12288, 151936, R"("num_key_value_heads": 8, "head_dim": 128)"),
       8'190'735'360},
      {"Qwen3-30B-A3B",
       config_text(
           "qwen3_moe", 48, 2048, 32, 6144, 151936,
           R"("num_key_value_heads": 4, "head_dim": 128, "num_experts": 128, "num_experts_per_tok": 8, "moe_intermediate_size": 768)"),
       30'532'122'624},
      {"gemma-2b",
       config_text("gemma", 18, 2048, 8, 16384, 256000, R"("num_key_value_heads": 1, "head_dim": 256)"),
       2'506'172'416},
      {"gemma-2-2b",
       config_text("gemma2", 26, 2304, 8, 9216, 256000, R"("num_key_value_heads": 4, "head_dim": 256)"),
       2'614'341'888},
      {"gemma-3-1b",
       config_text("gemma3_text", 26, 1152, 4, 6912, 262144, R"("num_key_value_heads": 1, "head_dim": 256)"),
       999'885'952},
      {"Phi-3-mini-4k", config_text("phi3", 32, 3072, 32, 8192, 32064, R"("num_key_value_heads": 32)"),
       3'821'079'552},
      {"phi-2",
       config_text("phi", 32, 2560, 32, 10240, 51200,
                   R"("num_key_value_heads": 32, "hidden_act": "gelu_new")"),
       2'779'683'840},
      {"OLMo-2-1B", config_text("olmo2", 16, 2048, 16, 8192, 100352, R"("num_key_value_heads": 16)"),
       1'484'916'736},
      {"starcoder2-3b",
       config_text("starcoder2", 30, 3072, 24, 12288, 49152, R"("num_key_value_heads": 2, "use_bias": true)"),
       3'030'371'328},
      {"falcon-7b",
       config_text("falcon", 32, 4544, 71, 18176, 65024,
                   R"("bias": false, "multi_query": true, "parallel_attn": true)"),
       6'921'720'704},
      {"opt-125m",
       config_text(
           "opt", 12, 768, 12, 3072, 50272,
           R"("ffn_dim": 3072, "max_position_embeddings": 2048, "word_embed_proj_dim": 768, "activation_function": "relu")"),
       125'239'296},
      {"bloom-560m", config_text("bloom", 24, 1024, 16, 4096, 250880, R"("n_layer": 24, "n_head": 16)"),
       559'214'592},
      {"pythia-70m", config_text("gpt_neox", 6, 512, 8, 2048, 50304, gelu), 70'426'624},
      {"pythia-160m", config_text("gpt_neox", 12, 768, 12, 3072, 50304, gelu), 162'322'944},
      {"roberta-base",
       config_text(
           "roberta", 12, 768, 12, 3072, 50265,
           R"("max_position_embeddings": 514, "type_vocab_size": 1, "architectures": ["RobertaForMaskedLM"])"),
       124'697'433},
      {"distilbert-base-uncased",
       config_text(
           "distilbert", 6, 768, 12, 3072, 30522,
           R"("n_layers": 6, "dim": 768, "n_heads": 12, "hidden_dim": 3072, "max_position_embeddings": 512, "activation": "gelu", "architectures": ["DistilBertForMaskedLM"])"),
       66'985'530},
      {"Llama-3.2-1B",
       config_text("llama", 16, 2048, 32, 8192, 128256,
                   R"("num_key_value_heads": 8, "head_dim": 64, "tie_word_embeddings": true)"),
       1'235'814'400},
  }));
  CAPTURE(published.name);
  CHECK(trainable_parameters(imported(published.json, 128)) == published.parameters);
}

TEST_CASE("the head that architectures names is built", "[models]") {
  const std::int64_t llama = trainable_parameters(imported(kLlama)), bert = 109'482'240;  // with its pooler
  CHECK(trainable_parameters(imported(edited(kLlama, "\"LlamaForCausalLM\"]",
                                             "\"LlamaForSequenceClassification\"], \"num_labels\": 3"))) ==
        llama - (32000 - 3) * 8192);
  CHECK(trainable_parameters(imported(edited(kBert, "PreTraining", "SequenceClassification"))) ==
        bert + 2 * 769);
  CHECK(trainable_parameters(imported(edited(kBert, "PreTraining", "QuestionAnswering"))) ==
        bert - 768 * 769 + 2 * 769);
  CHECK(layer_named(imported(edited(kBert, "PreTraining", "TokenClassification")), "classes").output ==
        Shape{512, 2});
}

TEST_CASE("networks without a known head and keys of other networks are refused", "[models][errors]") {
  struct Case {
    std::string json, right, wrong, message;
  };
  const auto edit = GENERATE(values<Case>({
      {kBert, "BertForPreTraining", "BertModel",
       "architectures[0]: expected a network with a loss, whose name ends with ForMaskedLM, "
       "BertForPreTraining, ElectraForPreTraining, "
       "ForSequenceClassification, ForTokenClassification, ForQuestionAnswering, got \"BertModel\""},
      {kGpt2, "GPT2LMHeadModel", "GPT2DoubleHeadsModel", "expected a network with a loss"},
      {kVit, "\"hidden_act\"", "\"architectures\": [\"ViTForMaskedImageModeling\"], \"hidden_act\"",
       "ForImageClassification"},
      {kBert, "\"hidden_act\"", "\"position_embedding_type\": \"relative_key\", \"hidden_act\"",
       "position_embedding_type: expected absolute"},
      {kLlama, "\"hidden_act\"", "\"quantization_config\": {\"bits\": 4}, \"hidden_act\"",
       "the weights are quantized"},
      {kLlama, "\"hidden_act\"", "\"num_local_experts\": 8, \"hidden_act\"",
       "a network of llama has no experts here"},
      {kLlama, "\"hidden_act\"", "\"kv_lora_rank\": 512, \"hidden_act\"", "kv_lora_rank: expected 0"},
      {kBert, "\"hidden_act\"", "\"is_decoder\": true, \"hidden_act\"", "is_decoder: expected false"},
      {kBert, "\"hidden_act\"", "\"embedding_size\": 128, \"hidden_act\"", "embedding_size: expected 768"},
  }));
  CHECK_NOTHROW(imported(edit.json));
  CHECK_THROWS_WITH(imported(edited(edit.json, edit.right, edit.wrong)),
                    Catch::Matchers::Contains(edit.message));
}

TEST_CASE("a rotary network needs no number of positions where the length of samples is given", "[models]") {
  const std::string json = edited(kLlama, "\"max_position_embeddings\"", "\"max_sequence_length\"");
  CHECK(imported(json, 128).input == Shape{128});
  CHECK_THROWS_WITH(imported(json),
                    "--sequence: required, as the configuration does not say the most tokens of a sample");
}

TEST_CASE("what a network file leaves out of a configuration stands in its source", "[models]") {
  const auto source = [](const std::string& json) { return imported(json, 64).source; };
  CHECK_THAT(source(config_text("gemma2", 1, 64, 4, 128, 100, R"("sliding_window": 32)")),
             Catch::Matchers::Contains(
                 "the sliding window of 32 tokens is not modelled; gates of GELU count as SwiGLU"));
  CHECK_THAT(source(config_text("bloom", 1, 64, 4, 256, 100, R"("n_layer": 1, "n_head": 4)")),
             Catch::Matchers::Contains("(ALiBi) are not modelled"));
}
