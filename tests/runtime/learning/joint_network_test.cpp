#include "runtime/learning/joint_network.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <span>

#include "core/yaml.hpp"
#include "kernels/onednn/backend.hpp"
#include "strategies/model_parallel/layer_segments.hpp"

namespace stepcast::joint_network_test {
namespace {

Model small_model() {
  const YamlNode node = parse_yaml(R"(
name: small
source: test
input: [5]
layers:
  - {name: fc1, kind: dense, units: 4}
  - {name: fc2, kind: dense, units: 3}
  - {name: loss, kind: mean_squared_error}
)",
                                   "test.yaml");
  return read_model(YamlValue(node, ""));
}

std::span<const float> gradients_of(const Network& network) {
  return {network.all_parameters().gradient, network.all_parameters().elements};
}

}  // namespace

TEST_CASE("a joint network computes a pass when the last machine of its replica starts it",
          "[validate][learning]") {
  const Model model = small_model();
  const auto backend = make_onednn_backend();
  const NetworkOptions options{.batch = 2};
  const LayerRange all = segments_of({0, static_cast<int>(model.layers.size())});
  JointNetwork joint(*backend, model, options, 3);
  int mini_batches = 0;
  joint.set_next_batch([&] { ++mini_batches; });
  const auto has_gradients = [&] {
    return std::ranges::any_of(gradients_of(joint.network()), [](float value) { return value != 0; });
  };

  for (const int machine : {2, 0}) {  // both are ahead of machine 1
    joint.start_pass(machine, Work::forward, all);
    joint.start_pass(machine, Work::backward, all);
  }
  CHECK(mini_batches == 0);
  joint.start_pass(1, Work::forward, all);
  CHECK(mini_batches == 1);
  CHECK_FALSE(has_gradients());
  joint.start_pass(1, Work::backward, all);

  Network alone(*backend, model, options);
  alone.run_forward(0, model.layers.size());
  alone.run_backward(0, model.layers.size());
  CHECK(has_gradients());
  CHECK(std::ranges::equal(gradients_of(joint.network()), gradients_of(alone)));
}

TEST_CASE("machines that each update their slice of a joint network take one step of its optimizer",
          "[validate][learning]") {
  const Model model = small_model();
  const auto backend = make_onednn_backend();
  NetworkOptions options{.batch = 2};
  options.optimizer.kind = Optimizer::Kind::adam;
  JointNetwork joint(*backend, model, options, 2);
  Network alone(*backend, model, options);
  const std::size_t count = alone.all_parameters().elements;
  const std::vector<float> gradient(count, 0.5F);
  for (int step = 0; step < 3; ++step) {
    alone.begin_update();
    alone.update(0, count, gradient.data());
    for (const std::size_t machine : {std::size_t{1}, std::size_t{0}}) {
      joint.begin_update(static_cast<int>(machine));
      joint.network().update(machine * count / 2, (machine + 1) * count / 2, gradient.data());
    }
  }
  const float* one = joint.network().all_parameters().value;
  CHECK(std::equal(one, one + count, alone.all_parameters().value));
}

}  // namespace stepcast::joint_network_test
