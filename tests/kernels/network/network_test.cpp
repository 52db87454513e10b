#include "kernels/network/network.hpp"

#include <catch2/catch.hpp>
#include <map>

#include "check/cases.hpp"
#include "kernels/onednn/backend.hpp"
#include "networks.hpp"
#include "strategies/arithmetic/optimizer.hpp"

using namespace stepcast;

using namespace stepcast::test;

TEST_CASE("training on a separable task brings the loss near zero", "[kernels][network]") {
  const auto kind = GENERATE(Optimizer::Kind::sgd, Optimizer::Kind::adagrad, Optimizer::Kind::rmsprop,
                             Optimizer::Kind::adam);
  const auto backend = make_onednn_backend();
  const double rate = kind == Optimizer::Kind::sgd ? 0.1 : 0.02;
  CAPTURE(ordinal(kind));
  check_learns_plane(*backend, {.kind = kind, .learning_rate = rate});
}

TEST_CASE("each element of a large array depends on its index, not on the thread that draws it",
          "[kernels][network]") {
  const auto backend = make_onednn_backend();
  const auto tensor = backend->make_tensor({1, 2'000'001});  // enough for several threads
  const RandomKey key{.seed = 3, .purpose = Purpose::data, .step = 5};
  fill_uniform(*tensor, key);
  const std::vector<float> values = tensor->read();
  for (std::size_t i = 0; i < values.size(); i += 997) {
    RandomKey own = key;
    own.item = i / 2;
    const UniformPair pair = uniform_pair(own);
    CHECK(values[i] == static_cast<float>(2 * (i % 2 == 0 ? pair.first : pair.second) - 1));
  }
}

TEST_CASE("gradients of all layers are contiguous, in the model's order", "[kernels][network]") {
  const auto backend = make_onednn_backend();
  Network network(*backend, residual_model(), {.batch = 1});
  const ParameterView* last = nullptr;
  std::size_t arrays = 0;
  for (std::size_t i = 0; i < network.model().layers.size(); ++i) {
    for (const ParameterView& view : network.parameters(i)) {
      if (last != nullptr) {
        const auto gap = view.gradient - (last->gradient + last->elements);
        CHECK(gap >= 0);
        CHECK(gap < 16);
        CHECK(view.value - last->value == view.gradient - last->gradient);
      }
      last = &view;
      ++arrays;
    }
  }
  CHECK(arrays ==
        7);  // two scale and shift, two weights and a bias of convolutions, weight and bias of dense
}

TEST_CASE("the same seed gives the same network after several steps", "[kernels][network]") {
  const auto backend = make_onednn_backend();
  std::vector<std::vector<float>> weights;
  for (int run = 0; run < 2; ++run) {
    Network network(*backend, residual_model(), {.batch = 2, .seed = 5});
    for (int i = 0; i < 3; ++i) network.step();
    weights.push_back(network.kernel(2).read_parameter(0));
  }
  CHECK(weights[0] == weights[1]);
}

TEST_CASE("workers start from the same parameters with data of their own", "[kernels][network]") {
  const auto backend = make_onednn_backend();
  Network one(*backend, two_layer_model(4), {.batch = 2, .data_seed = 1});
  Network two(*backend, two_layer_model(4), {.batch = 2, .data_seed = 2});
  CHECK(one.kernel(0).read_parameter(0) == two.kernel(0).read_parameter(0));
  CHECK(one.input().read() != two.input().read());
}

TEST_CASE("networks that share parameters train them by turns as one network does", "[kernels][network]") {
  const auto backend = make_onednn_backend();
  const NetworkOptions options{.batch = 2, .optimizer = {.learning_rate = 0.1, .momentum = 0.9}};
  Network alone(*backend, two_layer_model(4), options), first(*backend, two_layer_model(4), options);
  NetworkOptions sharing = options;
  sharing.part.parameters_of = &first;
  Network second(*backend, two_layer_model(4), sharing);
  for (int turn = 0; turn < 4; ++turn) {
    alone.step();
    (turn % 2 == 0 ? first : second).step();
  }
  CHECK(first.kernel(0).read_parameter(0) == alone.kernel(0).read_parameter(0));
  CHECK(second.kernel(0).read_parameter(0) == alone.kernel(0).read_parameter(0));
}

TEST_CASE("inputs from another network have the same values in any layout", "[kernels][network]") {
  const auto backend = make_onednn_backend();
  for (const Shape& shape : {Shape{2, 3}, Shape{2, 3, 5}, Shape{2, 32, 6, 5}, Shape{1, 3, 4, 4},
                             Shape{2, 17, 3, 3}, Shape{2, 16, 3, 4, 2}}) {
    const auto tensor = backend->make_activations(shape);
    CHECK(tensor->shape() == shape);
    std::vector<float> values(tensor->elements());
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = i;
    tensor->copy_from(values.data());
    std::vector<float> back(values.size());
    tensor->copy_to(back.data());
    CHECK(back == values);
  }
}

TEST_CASE("a step runs every pass that the network has, once and in order", "[kernels][network]") {
  const auto backend = make_onednn_backend();
  Network network(*backend, residual_model(), {.batch = 1});
  std::map<Pass, std::vector<std::size_t>> seen;
  network.step([&](std::size_t layer, Pass pass) { seen[pass].push_back(layer); });
  CHECK(seen[Pass::forward] == std::vector<std::size_t>{0, 1, 2, 3, 4, 5, 6, 7, 8});
  CHECK(seen[Pass::backward_weights] == std::vector<std::size_t>{7, 2, 0});
  CHECK(seen[Pass::update] == std::vector<std::size_t>{0, 1, 2, 7});
  CHECK(seen[Pass::backward_data].front() == 8);
  CHECK(seen[Pass::backward_data].back() == 1);
}

using namespace stepcast::test;

TEST_CASE("every optimizer follows its formula over several steps", "[kernels][optimizer]") {
  const auto kind = GENERATE(Optimizer::Kind::sgd, Optimizer::Kind::adagrad, Optimizer::Kind::rmsprop,
                             Optimizer::Kind::adam);
  const double momentum = GENERATE(0.0, 0.9);
  const Optimizer optimizer{.kind = kind, .learning_rate = 0.05, .momentum = momentum, .decay = 0.99};
  CAPTURE(ordinal(kind), momentum);

  Array expected = uniform_array(37, 1);
  std::vector<Array> states(state_arrays(optimizer), Array(37));
  std::vector<float> found = as_floats(expected);
  std::vector<std::vector<float>> found_states(2, std::vector<float>(37));
  for (std::uint32_t step = 1; step <= 5; ++step) {
    const Array gradient = uniform_array(37, 10 + step);
    const std::vector<float> floats = as_floats(gradient);
    reference::update(optimizer, gradient, step, expected, states);
    update_on_cpu(optimizer, {.value = found.data(),
                              .gradient = floats.data(),
                              .state = {found_states[0].data(), found_states[1].data()},
                              .elements = 37,
                              .step = step});
  }
  // The first step of adagrad, rmsprop and adam is the sign of a gradient times the rate: rounding of small
  // gradients changes it by 1e-6 of that.
  for (std::size_t i = 0; i < expected.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(1e-5));
}

TEST_CASE("adam's first step has the length of the learning rate, whatever the gradient",
          "[kernels][optimizer]") {
  const Optimizer adam{.kind = Optimizer::Kind::adam, .learning_rate = 0.5};
  std::vector<float> value{1, 1}, first(2), second(2);
  const std::vector<float> gradient{1e-3f, -1e3f};
  update_on_cpu(adam, {.value = value.data(),
                       .gradient = gradient.data(),
                       .state = {first.data(), second.data()},
                       .elements = 2,
                       .step = 1});
  CHECK(value[0] == Approx(0.5).epsilon(1e-4));
  CHECK(value[1] == Approx(1.5).epsilon(1e-4));
}
