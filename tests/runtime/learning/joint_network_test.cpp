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

LayerRange all_segments(const Model& model) {
  return segments_of({0, static_cast<int>(model.layers.size())});
}

}  // namespace

TEST_CASE("a joint network computes a pass when the last machine of its replica starts it",
          "[validate][learning]") {
  const Model model = small_model();
  const auto backend = make_onednn_backend();
  const NetworkOptions options{.batch = 2};
  const LayerRange all = all_segments(model);
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
      joint.begin_update(machine);
      joint.network().update(machine * count / 2, (machine + 1) * count / 2, gradient.data());
    }
  }
  const float* one = joint.network().all_parameters().value;
  CHECK(std::equal(one, one + count, alone.all_parameters().value));
}

TEST_CASE("a group runs a pass when its first rank starts it, and sums gradients when all groups have theirs",
          "[validate][learning]") {
  const Model model = small_model();
  const auto backend = make_onednn_backend();
  const LayerRange all = all_segments(model);
  GroupNetworks groups;
  std::vector<std::vector<float>> own;  // gradients, from networks that train alone
  for (const int number : {0, 1}) {
    NetworkOptions options{.batch = 2};
    options.data_seed = 1 + number;
    groups[number] = std::make_unique<GroupNetwork>(*backend, model, options, 2);
    Network alone(*backend, model, options);
    alone.run_forward(0, model.layers.size());
    alone.run_backward(0, model.layers.size());
    own.emplace_back(gradients_of(alone).begin(), gradients_of(alone).end());
  }
  CHECK(own[0] != own[1]);
  int updates = 0;
  const auto set_rate = [&](Network& network, std::int64_t step) {
    ++updates;
    CHECK(step == 1);
    const std::span<const float> summed = gradients_of(network);
    for (std::size_t i = 0; i < summed.size(); ++i) CHECK(summed[i] == own[0][i] + own[1][i]);
  };

  groups[0]->start_pass(1, Work::forward, all);
  groups[0]->start_pass(1, Work::backward, all);
  CHECK(std::ranges::equal(gradients_of(groups[0]->network()), own[0]));
  groups[0]->start_pass(0, Work::forward, all);  // has run
  CHECK(std::ranges::equal(gradients_of(groups[0]->network()), own[0]));
  groups[1]->start_pass(0, Work::forward, all);
  groups[1]->start_pass(0, Work::backward, all);
  for (const int number : {0, 1}) groups[number]->start_update(1, groups, set_rate);
  CHECK(updates == 2);
  groups[1]->start_update(0, groups, set_rate);  // has run
  CHECK(updates == 2);
  const Network &first = groups[0]->network(), &second = groups[1]->network();
  CHECK(std::equal(first.all_parameters().value, first.all_parameters().value + own[0].size(),
                   second.all_parameters().value));
}

TEST_CASE("a gradient that another group has not computed cannot be summed", "[validate][learning]") {
  const Model model = small_model();
  const auto backend = make_onednn_backend();
  const LayerRange all = all_segments(model);
  GroupNetworks groups;
  for (const int number : {0, 1})
    groups[number] = std::make_unique<GroupNetwork>(*backend, model, NetworkOptions{.batch = 2}, 1);
  groups[0]->start_pass(0, Work::forward, all);
  groups[0]->start_pass(0, Work::backward, all);
  CHECK_THROWS_AS(groups[0]->start_update(0, groups, [](Network&, std::int64_t) {}), std::logic_error);
}

}  // namespace stepcast::joint_network_test
