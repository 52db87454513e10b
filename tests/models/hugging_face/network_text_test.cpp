#include "models/hugging_face/network_text.hpp"

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
       "config.json:3:65: model_type: expected one of gpt2, llama, mistral, mixtral, bert, vit, got "
       "\"gpt3\"; "
       "did you mean \"gpt2\"?"},
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
