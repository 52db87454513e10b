#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include "core/os/files.hpp"
#include "core/yaml.hpp"
#include "data/train_and_test.hpp"
#include "kernels/onednn/backend.hpp"
#include "kernels/timing/host_info.hpp"
#include "learned_curve.hpp"
#include "runtime/learning/learning_shard.hpp"
#include "strategies/arithmetic/optimizer.hpp"

namespace stepcast::learning_test {
namespace {

Model model_of(const char* text) {
  const YamlNode node = parse_yaml(text, "test.yaml");
  return read_model(YamlValue(node, ""));
}

Model small_cnn() {
  const std::string file = STEPCAST_SOURCE_DIR "/models/small-cnn.yaml";
  const YamlNode node = parse_yaml(read_file(file), file);
  return read_model(YamlValue(node, ""));
}

constexpr const char* kMesh = R"(
name: small-mesh
source: test
input: [3, 32, 32]
layers:
  - {name: conv1, kind: convolution, filters: 8, kernel: 5, stride: 2, pad: 2}
  - {name: relu1, kind: relu}
  - {name: conv2, kind: convolution, filters: 8, kernel: 3, pad: 1}
  - {name: relu2, kind: relu}
  - {name: conv3, kind: convolution, filters: 1, kernel: 1}
  - {name: loss, kind: sigmoid_cross_entropy}
)";

constexpr const char* kGru = R"(
name: small-gru
source: test
input: [20, 4]
layers:
  - {name: gru, kind: gru, hidden: 24, output: last}
  - {name: fc, kind: dense, units: 3}
  - {name: loss, kind: softmax_cross_entropy}
)";

constexpr const char* kCritic = R"(
name: small-critic
source: test
input: [1, 12, 12, 12]
layers:
  - {name: conv1, kind: convolution, filters: 6, kernel: 5, stride: 2, pad: 2}
  - {name: relu1, kind: leaky_relu, slope: 0.3}
  - {name: flatten, kind: reshape, shape: [1296]}
  - {name: fc, kind: dense, units: 1}
  - {name: loss, kind: sigmoid_cross_entropy}
)";

struct Learned {
  Score before, after;
};

Learned learned(const Model& model, const DataOptions& options, const Optimizer& optimizer, int steps) {
  set_kernel_threads(1);
  const auto backend = make_onednn_backend();
  const LearningTask task = learning_task(model);
  const TrainAndTest data = make_data(options, task.form);
  Network network(*backend, model, {.batch = 32, .optimizer = optimizer});
  Batches batches(*data.train, task.form, {.batch = 32});
  Evaluator held_out(*backend, model, task, *data.test, options.test_samples);
  Learned result;
  result.before = held_out.score(read_parameters(network), [] {});
  for (int step = 0; step < steps; ++step) {
    const Batches::Batch& batch = batches.next();
    network.input().write(batch.inputs);
    network.kernel(task.loss_layer).targets()->write(batch.targets);
    network.step();
  }
  result.after = held_out.score(read_parameters(network), [] {});
  CAPTURE(model.name, result.before.loss, result.before.accuracy, result.after.loss, result.after.accuracy);
  CHECK(result.after.loss < 0.5 * result.before.loss);
  return result;
}

}  // namespace

TEST_CASE("small-cnn learns the image task to over 95 %", "[validate][learning]") {
  DataOptions options;
  options.test_samples = 500;
  const Learned result = learned(small_cnn(), options, {.learning_rate = 0.01}, 100);
  CHECK(result.before.accuracy < 0.3);
  CHECK(result.after.accuracy > 0.95);
}

TEST_CASE("a small network learns the mesh task", "[validate][learning]") {
  DataOptions options;
  options.kind = DataOptions::Kind::mesh;
  options.samples = 1024;
  options.test_samples = 100;
  const Learned result =
      learned(model_of(kMesh), options, {.kind = Optimizer::Kind::adam, .learning_rate = 0.01}, 100);
  CHECK(result.before.accuracy < 0.8);
  CHECK(result.after.accuracy > 0.9);
}

TEST_CASE("a GRU learns the sequence task", "[validate][learning]") {
  DataOptions options;
  options.kind = DataOptions::Kind::sequences;
  options.test_samples = 500;
  const Learned result =
      learned(model_of(kGru), options, {.kind = Optimizer::Kind::adam, .learning_rate = 0.01}, 200);
  CHECK(result.before.accuracy < 0.6);
  CHECK(result.after.accuracy > 0.9);
}

TEST_CASE("a critic learns to tell showers from noise", "[validate][learning]") {
  DataOptions options;
  options.kind = DataOptions::Kind::showers;
  options.samples = 1024;
  options.test_samples = 200;
  const Learned result =
      learned(model_of(kCritic), options, {.kind = Optimizer::Kind::rmsprop, .learning_rate = 0.001}, 100);
  CHECK(result.before.accuracy < 0.8);
  CHECK(result.after.accuracy > 0.95);
}

TEST_CASE("a checkpoint gives back the parameters, and refuses another network's", "[validate][learning]") {
  const auto backend = make_onednn_backend();
  const Model model = model_of(kGru), other = model_of(kCritic);
  Network network(*backend, model, {.batch = 4, .seed = 5}), second(*backend, model, {.batch = 8, .seed = 6});
  const Parameters parameters = read_parameters(network);
  const auto file =
      std::filesystem::temp_directory_path() / ("stepcast-checkpoint-" + std::to_string(getpid()));
  save_checkpoint(file, model, parameters);
  write_parameters(second, load_checkpoint(file, model));
  CHECK(read_parameters(second) == parameters);
  CHECK_THROWS_WITH(load_checkpoint(file, other),
                    Catch::StartsWith(file.string() + ": expected a checkpoint"));
  const std::string text = read_file(file);
  write_atomically(file, text.substr(0, text.size() - 1));
  CHECK_THROWS_WITH(load_checkpoint(file, model), Catch::Contains("bytes, got"));
  std::filesystem::remove(file);
}

TEST_CASE("the learning rate grows to that of the larger mini-batch", "[validate][learning]") {
  const LearningRate fixed{.base = 0.1}, linear{.base = 0.1, .linear = true, .warm_up = 10};
  CHECK(fixed.at(1, 8) == 0.1);
  CHECK(linear.at(5, 8) == Approx(0.1 * (1 + 7 * 0.5)));
  CHECK(linear.at(10, 8) == Approx(0.8));
  CHECK(linear.at(500, 8) == Approx(0.8));
  CHECK(linear.at(500, 1) == 0.1);
  CHECK(LearningRate{.base = 0.1, .linear = true}.at(1, 4) == Approx(0.4));

  const LearningRate steps{.base = 0.1, .schedule = {{10, 0.1}, {20, 0.5}}};
  CHECK(steps.at(10, 1) == Approx(0.1));
  CHECK(steps.at(11, 1) == Approx(0.01));
  CHECK(steps.at(21, 1) == Approx(0.005));
}

namespace {

constexpr int kTokens = 8, kFeatures = 4, kWords = 6;

const std::string kLanguage = R"(
name: language
source: test
input: [8, 4]
layers:
  - {name: embed, kind: dense, units: 8}
  - {name: places, kind: position_embedding}
  - {name: norm1, kind: layer_norm}
  - {name: qkv, kind: dense, units: 24}
  - {name: attention, kind: attention, heads: 4, causal: true}
  - {name: projection, kind: dense, units: 8}
  - {name: add1, kind: add, inputs: [projection, places]}
  - {name: norm2, kind: layer_norm}
  - {name: expand, kind: dense, units: 12}
  - {name: gelu, kind: gelu}
  - {name: contract, kind: dense, units: 8}
  - {name: add2, kind: add, inputs: [contract, add1]}
  - {name: words, kind: dense, units: 6}
  - {name: loss, kind: softmax_cross_entropy}
)";

/// Samples with a word for each token, which follows from the token's place and its first feature.
std::string write_samples(const std::string& name, int samples, int first) {
  const auto path =
      std::filesystem::temp_directory_path() / ("stepcast-" + name + "-" + std::to_string(getpid()));
  std::ofstream file(path, std::ios::binary);
  for (int sample = first; sample < first + samples; ++sample) {
    std::vector<float> numbers;
    for (int i = 0; i < kTokens * kFeatures; ++i) numbers.push_back(std::sin(1 + 3.7 * sample + 1.3 * i));
    for (int token = 0; token < kTokens; ++token)
      numbers.push_back((token + (numbers[token * kFeatures] > 0 ? 1 : 0)) % kWords);
    file.write(reinterpret_cast<const char*>(numbers.data()),
               static_cast<std::streamsize>(numbers.size() * sizeof(float)));
  }
  return path.string();
}

}  // namespace

TEST_CASE("ranks with parts of every sequence learn like ranks with whole sequences, to rounding",
          "[validate][learning]") {
  const std::string mesh = "{kind: synchronous, all_reduce: ring, mesh: ";
  using test::LearningCase;
  constexpr auto kRaw = DataOptions::Kind::raw;
  const LearningCase c = GENERATE_COPY(
      LearningCase{mesh + "{tensor: 2}, sequence_parallel: true}", 2, 1, &kLanguage, kRaw},
      LearningCase{mesh + "{tensor: 2, data: 2}, sequence_parallel: true}", 4, 2, &kLanguage, kRaw},
      LearningCase{mesh + "{context: 2}, context_exchange: all_to_all}", 2, 1, &kLanguage, kRaw},
      LearningCase{mesh + "{context: 2, data: 2}, context_exchange: all_gather}", 4, 2, &kLanguage, kRaw},
      LearningCase{mesh + "{context: 2}, context_exchange: all_gather, shard: parameters, accumulation: 2}",
                   2, 1, &kLanguage, kRaw},
      LearningCase{mesh + "{context: 2, tensor: 2}, context_exchange: all_to_all, sequence_parallel: true}",
                   4, 1, &kLanguage, kRaw});
  CAPTURE(c.strategy);
  LearningOptions options = test::options_of(c);
  options.seed = 7;
  options.data.train = {write_samples("train", 40, 0)};
  options.data.test = {write_samples("test", 30, 40)};
  const test::Curve whole =
      test::learned("{kind: synchronous, all_reduce: ring}", c.replicas, *c.model, options);
  test::check_same(test::learned(c.strategy, c.ranks, *c.model, options), whole);
  CHECK(std::abs(whole.evaluations.back().loss - whole.evaluations.front().loss) > 0.01);
  std::filesystem::remove(options.data.train.front());
  std::filesystem::remove(options.data.test.front());
}
}  // namespace stepcast::learning_test
