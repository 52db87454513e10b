#include <unistd.h>

#include <catch2/catch.hpp>

#include "core/os/files.hpp"
#include "core/yaml.hpp"
#include "data/train_and_test.hpp"
#include "kernels/onednn/backend.hpp"
#include "kernels/timing/host_info.hpp"
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

}  // namespace stepcast::learning_test
