#include <catch2/catch.hpp>
#include <set>

#include "core/error.hpp"
#include "models/cost/cost.hpp"
#include "models/layer_times/derived_trace.hpp"
#include "models/network/layer.hpp"
#include "models/partition/layer_partition.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

std::int64_t parameters_without(const Model& model, const std::set<std::string>& layers) {
  std::int64_t sum = 0;
  for (const Layer& layer : model.layers) {
    for (const ParameterTensor& tensor : layer.parameters)
      sum += tensor.trainable && !layers.contains(layer.name) ? tensor.elements() : 0;
  }
  return sum;
}

/// Parameters that a token or an image position is multiplied with.
double matrix_parameters(const Model& model) {
  double sum = 0;
  for (const Layer& layer : model.layers) {
    if (layer.kind != LayerKind::dense) continue;
    sum += 1.0 * layer.input.back() * layer.output.back();
  }
  return sum;
}

}  // namespace

TEST_CASE("networks of the library have exactly the published numbers of parameters", "[models]") {
  struct Case {
    std::string name;
    std::int64_t parameters;
  };
  const auto published = GENERATE(values<Case>({
      // num_params in torchvision/models/{resnet,mobilenetv2,inception,vgg,vision_transformer}.py; Inception
      // with its
      // auxiliary classifier.
      {"resnet18", 11'689'512},
      {"resnet34", 21'797'672},
      {"resnet50", 25'557'032},
      {"resnet101", 44'549'160},
      {"resnet152", 60'192'808},
      {"resnext50-32x4d", 25'028'904},
      {"resnext101-32x4d", 44'177'704},  // timm/resnext101_32x4d on Hugging Face: 44.2 million
      {"mobilenet-v2", 3'504'872},
      {"inception-v3", 27'161'264},
      {"vgg16-bn", 138'365'992},
      {"vgg19", 143'667'240},
      {"vit-b16", 86'567'656},
      {"vit-l16", 304'326'632},
      {"gpt2-lm", 124'439'808},  // GPT2LMHeadModel of Hugging Face's transformers 5.17
      // Parameters of the checkpoints (model cards of meta-llama and mistralai on Hugging Face).
      {"llama2-7b", 6'738'415'616},
      {"llama2-13b", 13'015'864'320},
      {"llama2-70b", 68'976'648'192},
      {"llama3-8b", 8'030'261'248},
      {"deepseek-v3", 671'026'404'352},  // less 14,848 biases of routing and multi-token prediction
      {"llama3-70b", 70'553'706'496},
      {"llama3-405b", 405'853'388'800},
      {"mixtral-8x7b", 46'702'792'704},
  }));
  CAPTURE(published.name);
  CHECK(trainable_parameters(shipped_model(published.name)) == published.parameters);
}

TEST_CASE("Inception v3 without its auxiliary classifier has 23,834,568 parameters", "[models]") {
  CHECK(parameters_without(shipped_model("inception-v3"),
                           {"aux_1x1", "aux_1x1_bn", "aux_5x5", "aux_5x5_bn", "aux_fc"}) == 23'834'568);
}

// BertModel of Hugging Face's transformers (bert-base-uncased, bert-large-uncased) has no heads of
// pre-training.
TEST_CASE("BERT has the published parameters without the heads of pre-training", "[models]") {
  const std::set<std::string> heads{"next_sentence", "masked", "masked_norm", "vocabulary"};
  CHECK(parameters_without(shipped_model("bert-base"), heads) == 109'482'240);
  CHECK(parameters_without(shipped_model("bert-large"), heads) == 335'141'888);
  CHECK(trainable_parameters(shipped_model("bert-base-masked")) == 109'514'298);  // BertForMaskedLM
  CHECK(trainable_parameters(shipped_model("bert-large-classifier")) == 335'141'888 + 2 * 1025);
  CHECK(trainable_parameters(shipped_model("bert-base")) == 109'482'240 + 590'592 + 1'536 + 30'522 + 1'538);
}

// T. Brown et al., NeurIPS 2020, table D.1, column "Params (M)": rounded to three or four digits.
TEST_CASE("the GPT-3 family has the published millions of parameters", "[models]") {
  struct Case {
    std::string name;
    double millions, tolerance;
  };
  const auto published = GENERATE(values<Case>({{"gpt3-small", 125, 0.5},
                                                {"gpt3-medium", 356, 0.5},
                                                {"gpt3-large", 760, 0.5},
                                                {"gpt3-xl", 1'320, 5},
                                                {"gpt3-2.7b", 2'650, 5},
                                                {"gpt3-6.7b", 6'660, 5},
                                                {"gpt3-13b", 12'850, 5},
                                                {"gpt3-175b", 174'600, 50}}));
  CAPTURE(published.name);
  CHECK(trainable_parameters(shipped_model(published.name)) / 1e6 ==
        Approx(published.millions).margin(published.tolerance).epsilon(0));
}

// `_ops` in torchvision/models/*.py: multiply-adds of the forward pass, in units of 1e9, three digits. The
// auxiliary classifier of Inception does not run there.
TEST_CASE("forward work of networks of images equals torchvision's", "[models]") {
  struct Case {
    std::string name;
    double billions, left_out;
  };
  const double auxiliary = 128 * 768 * 25 + 768 * 128 * 25 + 768 * 1000;
  const auto published = GENERATE_COPY(values<Case>({{"resnet18", 1.814, 0},
                                                     {"resnet34", 3.664, 0},
                                                     {"resnet50", 4.089, 0},
                                                     {"resnet101", 7.801, 0},
                                                     {"resnet152", 11.514, 0},
                                                     {"resnext50-32x4d", 4.230, 0},
                                                     {"mobilenet-v2", 0.301, 0},
                                                     {"vgg16", 15.470, 0},
                                                     {"vgg16-bn", 15.470, 0},
                                                     {"vgg19", 19.632, 0},
                                                     {"inception-v3", 5.713, auxiliary},
                                                     {"vit-b16", 17.564, 0},
                                                     {"vit-l16", 61.555, 0}}));
  CAPTURE(published.name);
  const double multiply_adds = forward_flops(shipped_model(published.name)).value / 2 - published.left_out;
  CHECK(multiply_adds / 1e9 == Approx(published.billions).margin(0.00051).epsilon(0));
}

TEST_CASE("training work of a transformer is 6 flop a token and matrix element, and attention", "[models]") {
  struct Case {
    std::string name;
    double layers, tokens, width;
  };
  const auto given = GENERATE(values<Case>(
      {{"gpt3-175b", 96, 2048, 12288}, {"llama2-7b", 32, 4096, 4096}, {"llama3-70b", 80, 8192, 8192}}));
  CAPTURE(given.name);
  const Model model = shipped_model(given.name);
  const double attention = 12 * given.layers * given.tokens * given.tokens * given.width;
  const double law = 6 * given.tokens * matrix_parameters(model) + attention;
  CHECK(training_flops(model).value == Approx(law).epsilon(1e-12));
}

// T. Brown et al., table D.1: 3.14e23 flop for 300 billion tokens by 6 N D, which leaves out attention (2.8 %
// here, 12 x 96 x 2,048 x 12,288 / 6 N) and counts the table of positions.
TEST_CASE("training GPT-3 takes the published work", "[models]") {
  const double tokens = 300e9;
  CHECK(training_flops(shipped_model("gpt3-175b")).value / 2048 * tokens == Approx(3.14e23).epsilon(0.03));
}

// A. Q. Jiang et al., arXiv:2401.04088, section 1: 47 billion parameters, 13 billion of them used for a
// token.
TEST_CASE("a token of Mixtral uses two of eight experts", "[models]") {
  const Model model = shipped_model("mixtral-8x7b");
  const double tokens = 4096, attention = 4.0 * 32 * tokens * tokens * 4096;
  const double used = (forward_flops(model).value - attention) / (2 * tokens);
  CHECK(used + 32'000.0 * 4096 == Approx(12.88e9).epsilon(0.001));  // with the table of words
}

TEST_CASE("shipped networks have the published counts", "[models]") {
  struct Case {
    std::string name;
    std::int64_t trainable, all, tensors;
  };
  const auto published = GENERATE(values<Case>({
      {"resnet50", 25'557'032, 25'610'152, 161},
      {"vgg16", 138'357'544, 138'357'544, 32},
      {"alexnet", 61'842'345, 61'842'345, 16},
      {"mesh-1k", 34'418'688, 34'438'912, 91},  // with batch-norm scale and shift
      {"mesh-2k", 12'387'584, 12'396'800, 55},
      {"mesh-512", 34'418'688, 34'438'912, 91},
      {"chen-huo-dnn", 62'944'850, 62'944'850, 16},
      {"chen-huo-dblstm", 11'705'432, 11'705'432, 17},
      {"distbelief-speech", 41'777'152, 41'777'152, 10},
      {"gan-generator", 872'808, 872'948, 13},
      {"gan-discriminator", 73'402, 73'450, 18},
      {"3dgan", 872'808 + 73'402, 872'948 + 73'450, 31},
      {"nnlo-gru", 45'955, 45'955, 13},
      {"small-cnn", 600'810, 600'810, 8},
      {"small-mlp", 784 * 1024 + 1024 + 1024 * 1024 + 1024 + 10250, 1'863'690, 6},
      {"small-mesh", 108'976, 109'136, 16},
      {"small-transformer", 121'162, 121'162, 30},
      {"small-language-model", 108'288, 108'288, 27},
      {"small-experts", 350'922, 350'922, 28},
      {"gpt2-small", 124'439'808 - 1024 * 768, 124'439'808 - 1024 * 768, 147},  // no table of positions
  }));
  CAPTURE(published.name);
  const Model model = shipped_model(published.name);
  CHECK(model.name == published.name);
  CHECK(trainable_parameters(model) == published.trainable);
  CHECK(all_parameters(model) == published.all);
  CHECK(gradient_tensors(model) == published.tensors);
}

TEST_CASE("networks with published totals come close to them", "[models]") {
  CHECK(trainable_parameters(shipped_model("distbelief-image")) / 1e9 == Approx(1.7).epsilon(0.005));
  CHECK(trainable_parameters(shipped_model("seide-dnn")) / 1e6 == Approx(46).epsilon(0.005));
  CHECK(trainable_parameters(shipped_model("chen-huo-dnn")) / 1e6 == Approx(63).epsilon(0.005));
}

TEST_CASE("the forward work of shipped networks equals the published totals", "[models]") {
  struct Case {
    std::string name;
    double flops, tolerance;  // half of the last published digit, where rounded
  };
  const auto published = GENERATE(values<Case>({
      {"resnet50", 8'178'368'512, 0},
      {"vgg16", 30'940'528'640, 0},
      {"mesh-1k", 2'365'453'238'272, 0},
      {"mesh-2k", 1'895'456'309'248, 0},
      {"mesh-512", 2'365'453'238'272.0 / 4, 0},
      {"gan-generator", 511.4e6, 1e6},
      {"gan-discriminator", 1569.7e6, 1e6},
      {"distbelief-speech", 83.5e6, 0.05e6},
      {"chen-huo-dnn", 0.126e9, 0.0005e9},
      {"chen-huo-dblstm", 106 * 23e6, 106 * 0.5e6},
  }));
  CAPTURE(published.name);
  CHECK(forward_flops(shipped_model(published.name)).value ==
        Approx(published.flops).margin(published.tolerance));
}

using Catch::Matchers::Contains;

namespace {

Model with_layer(const std::string& keys) {
  return model_of(
      "{name: m, source: s, input: [3, 8, 8], layers: [{name: c, kind: convolution, filters: 4, "
      "kernel: 3, pad: 1}, {name: r, kind: relu}, {name: what, kind: measured, " +
      keys + "}, {name: f, kind: dense, units: 10}, {name: loss, kind: mean_squared_error}]}");
}

}  // namespace

TEST_CASE("a measured layer has the output and the trained arrays that its file says", "[models]") {
  const Model model = with_layer("inputs: [r, c, input], output: [7], parameters: [5, 30]");
  const Layer& layer = layer_named(model, "what");
  CHECK(layer.inputs == std::vector<int>{1, 0, -1});
  CHECK(layer.output == Shape{7});
  CHECK(layer_named(model, "f").parameters.front().shape == Shape{10, 7});
  CHECK(gradient_tensors(model) == 2 + 2 + 2);
  CHECK(trainable_parameters(model) == 112 + 35 + 80);
  CHECK(trainable_parameters(with_layer("output: [7]")) == 112 + 80);
}

TEST_CASE("a network may end in a measured layer, but no other output is left unread", "[models]") {
  const std::string head =
      "{name: m, source: s, input: [8], layers: [{name: f, kind: dense, units: 4}, "
      "{name: a, kind: measured, output: [1]}";
  CHECK(model_of(head + "]}").layers.size() == 2);
  CHECK_THROWS_WITH(model_of(head + ", {name: b, kind: measured, inputs: [f], output: [1]}]}"),
                    Contains("no layer reads the output of a"));
}

TEST_CASE("a measured layer without an output is refused", "[models]") {
  CHECK_THROWS_WITH(with_layer("parameters: [5]"), Contains("output: missing"));
  CHECK_THROWS_WITH(with_layer("output: []"), Contains("output: expected a shape of at least one integer"));
  CHECK_THROWS_WITH(with_layer("output: [7], parameters: [0]"), Contains("parameters[0]"));
  CHECK_THROWS_WITH(with_layer("inputs: [], output: [7]"), Contains("one or more inputs"));
}

TEST_CASE("a measured layer cannot be partitioned, and no rule gives its time", "[models]") {
  const Model model = with_layer("output: [7]");
  const char* const why =
      "layer what is of kind measured: its times are those of the whole layer, so it cannot be partitioned";
  CHECK(filter_problem(model, 2) == why);
  CHECK(filter_problem(model, 1).empty());
  CHECK(tensor_problem(model, 2) == std::string("the network has no transformer blocks; ") + why);
  const Device device = load_device(std::string(STEPCAST_SOURCE_DIR) + "/models", "v100-sxm2-16gb");
  CHECK_THROWS_WITH(derive(model, 8, device, {}, {}), Contains("layer what is of kind measured"));
}
