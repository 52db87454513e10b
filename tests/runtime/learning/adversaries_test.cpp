#include "runtime/learning/adversaries.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "core/yaml.hpp"
#include "data/train_and_test.hpp"
#include "kernels/onednn/backend.hpp"
#include "kernels/timing/host_info.hpp"
#include "runtime/learning/learning_shard.hpp"

namespace stepcast::adversaries_test {
namespace {

constexpr std::int64_t kSamples = 6;
constexpr std::size_t kLogits = 7;  // the layer before the loss
constexpr LayerRange kAll{0, 9};

/// A generator of four layers and a discriminator. @param third  a layer of the discriminator
Model small_gan(const std::string& third = "{name: disc_tanh, kind: tanh}") {
  const std::string text = R"(
name: small-gan
source: test
input: [4]
layers:
  - {name: gen1, kind: dense, units: 8}
  - {name: gen_tanh, kind: tanh}
  - {name: gen2, kind: dense, units: 64}
  - {name: cells, kind: reshape, shape: [1, 4, 4, 4]}
  - {name: disc1, kind: convolution, filters: 4, kernel: 3, pad: 1}
  - )" + third + R"(
  - {name: flatten, kind: reshape, shape: [256]}
  - {name: disc2, kind: dense, units: 1}
  - {name: loss, kind: sigmoid_cross_entropy}
)";
  const YamlNode node = parse_yaml(text, "test.yaml");
  return read_model(YamlValue(node, ""));
}

/// A generator and a discriminator with a mini-batch of real showers.
struct Gan {
  Model model = small_gan();
  LearningTask task = learning_task(model, "disc1");
  std::unique_ptr<Backend> backend = make_onednn_backend();
  Network network{
      *backend, model, {.batch = kSamples, .part = Adversaries::part(*task.discriminator, kSamples)}};
  Adversaries adversaries{network, {*task.discriminator, task.loss_layer}, 3, {.batch = kSamples}};
  std::vector<float> real;

  Gan() {
    DataOptions options;
    options.kind = DataOptions::Kind::showers;
    const TrainAndTest data = make_data(options, task.form);
    real = Batches(*data.train, task.form, {.batch = kSamples}).next().inputs;
    adversaries.begin(0, real);
  }

  void forward() { adversaries.run(Work::forward, kAll); }
  /// The mean of -log D over the generated samples, which are the second half of the batch.
  double loss_of_generator() {
    const std::vector<float> logits = network.kernel(kLogits).output().read();
    double sum = 0;
    for (std::size_t i = kSamples; i < logits.size(); ++i)
      sum += std::log1p(std::exp(-static_cast<double>(logits[i])));
    return sum / static_cast<double>(kSamples);
  }
};

}  // namespace

TEST_CASE("a generator and a discriminator each get the gradient of their own loss", "[learning]") {
  set_kernel_threads(1);
  Gan gan;
  gan.forward();
  gan.adversaries.run(Work::backward, kAll);
  const auto loss_with = [&](std::size_t layer, std::size_t element, float step) {
    std::vector<float> values = gan.network.kernel(layer).read_parameter(0);
    const float before = values.at(element);
    values[element] = before + step;
    gan.network.kernel(layer).write_parameter(0, values);
    gan.forward();
    values[element] = before;
    gan.network.kernel(layer).write_parameter(0, values);
    return layer < 4 ? gan.loss_of_generator() : gan.network.loss();
  };
  for (const std::size_t layer : {0U, 2U, 4U, 7U}) {
    const std::vector<float> gradient = gan.network.kernel(layer).read_gradient(0);
    for (const std::size_t element : {std::size_t{0}, std::size_t{3}, gradient.size() - 1}) {
      constexpr float kStep = 1e-2F;
      const double slope =
          (loss_with(layer, element, kStep) - loss_with(layer, element, -kStep)) / (2 * kStep);
      CAPTURE(layer, element);
      CHECK(gradient[element] == Approx(slope).epsilon(0.02).margin(2e-5));
    }
  }
}

TEST_CASE("passes of a GAN may be divided anywhere", "[learning]") {
  set_kernel_threads(1);
  Gan whole, divided;
  whole.forward();
  whole.adversaries.run(Work::backward, kAll);
  for (const LayerRange& part : {LayerRange{0, 3}, LayerRange{3, 6}, LayerRange{6, 9}})
    divided.adversaries.run(Work::forward, part);
  for (const LayerRange& part : {LayerRange{4, 9}, LayerRange{0, 4}})
    divided.adversaries.run(Work::backward, part);
  CHECK(whole.network.loss() == divided.network.loss());
  for (const std::size_t layer : {0U, 2U, 4U, 7U})
    CHECK(whole.network.kernel(layer).read_gradient(0) == divided.network.kernel(layer).read_gradient(0));
}

TEST_CASE("workers together draw the generator's inputs that one worker draws", "[learning]") {
  const std::vector<float> all = generator_inputs(5, 12, 4, 3), second = generator_inputs(5, 14, 2, 3);
  CHECK(std::vector<float>(all.begin() + 6, all.end()) == second);
  CHECK(generator_inputs(6, 12, 4, 3) != all);
}

TEST_CASE("the energy coefficient is 0 for equal sets and 1 for two points", "[learning]") {
  CHECK(energy_coefficient({1, 2, 3, 4}, {1, 2, 3, 4}, 2) == Approx(0).margin(1e-12));
  CHECK(energy_coefficient({0, 0}, {3, 4}, 2) == 1);
  // Distances: between 1; within {0, 2}: (0 + 2 + 2 + 0) / 4; within {1}: 0.
  CHECK(energy_coefficient({0, 2}, {1}, 1) == Approx(0.5));
  CHECK(energy_coefficient({1}, {1}, 1) == 0);
}

TEST_CASE("showers of low energy are compared among themselves", "[learning]") {
  // Energies of the real ones: 1, 2, 3, 4; below the median of 3 are the first two.
  const std::vector<float> real{1, 0, 1, 1, 3, 0, 0, 4};
  CHECK(low_energy_coefficient({1, 1, 1, 0, 50, 50}, real, 2) == Approx(0).margin(1e-12));
  CHECK(energy_coefficient({1, 1, 1, 0, 50, 50}, real, 2) > 0.1);
  CHECK(low_energy_coefficient({2, 0}, real, 2) == energy_coefficient({2, 0}, {1, 0, 1, 1}, 2));
  CHECK(low_energy_coefficient({3, 0, 7, 7}, real, 2) == 1);  // none is of low energy
}

TEST_CASE("models that are no generator and discriminator are refused", "[learning]") {
  const auto refuses = [](const Model& model, const char* first, const std::string& why) {
    CHECK_THROWS_WITH(learning_task(model, first),
                      "learning.discriminator: " + std::string(first) + ": " + why);
  };
  refuses(small_gan(), "disc", "small-gan has no layer of this name");
  refuses(small_gan(), "gen1", "expected layers before it, which are the generator");
  refuses(small_gan("{name: bn, kind: batch_norm}"), "disc1",
          "bn mixes real and generated samples; each must count alone");
  refuses(small_gan("{name: disc_tanh, kind: tanh}\n  - {name: sum, kind: add, inputs: [disc1, disc_tanh]}"),
          "disc_tanh", "sum reads a layer of the generator that is not its last layer");
}

}  // namespace stepcast::adversaries_test
