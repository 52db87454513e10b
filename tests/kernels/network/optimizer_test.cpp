#include "strategies/arithmetic/optimizer.hpp"

#include <catch2/catch.hpp>

#include "check/cases.hpp"

using namespace stepcast;
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
