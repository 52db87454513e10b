#include "strategies/arithmetic/center_updates.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "arithmetic/arrays.hpp"
#include "strategies/arithmetic/optimizer.hpp"

using namespace stepcast;
using test::random_floats;

namespace {

using Kind = Optimizer::Kind;

/// One element's parameter after gradients g1, g2, ... in double precision.
double after(const Optimizer& o, double parameter, const std::vector<double>& gradients) {
  double first = 0, second = 0;
  for (std::size_t t = 1; t <= gradients.size(); ++t) {
    const double g = gradients[t - 1], steps = static_cast<double>(t);
    if (o.kind == Kind::sgd) {
      first = o.momentum * first + g;
      parameter -= o.learning_rate * first;
    } else if (o.kind == Kind::adam) {
      first = o.momentum * first + (1 - o.momentum) * g;
      second = o.decay * second + (1 - o.decay) * g * g;
      parameter -= o.learning_rate * (first / (1 - std::pow(o.momentum, steps))) /
                   (std::sqrt(second / (1 - std::pow(o.decay, steps))) + o.epsilon);
    } else {
      second = o.kind == Kind::adagrad ? second + g * g : o.decay * second + (1 - o.decay) * g * g;
      parameter -= o.learning_rate * g / (std::sqrt(second) + o.epsilon);
    }
  }
  return parameter;
}

/// Parameters and what their optimizer keeps.
struct Server {
  Optimizer optimizer;
  std::vector<float> parameters;
  std::vector<std::vector<float>> states{2, std::vector<float>(parameters.size())};
  std::int64_t pushes = 0;

  void apply(const std::vector<float>& gradient, float scale = 1) {
    UpdateArrays arrays{.value = parameters.data(),
                        .gradient = gradient.data(),
                        .state = {states[0].data(), states[1].data()},
                        .elements = gradient.size(),
                        .step = ++pushes,
                        .scale = scale};
    update_on_cpu(optimizer, arrays);
  }
};

}  // namespace

TEST_CASE("a server applies every push by its optimizer", "[strategies][arithmetic]") {
  const Kind kind = GENERATE(Kind::sgd, Kind::adagrad, Kind::rmsprop, Kind::adam);
  const double momentum = GENERATE(0.0, 0.9);
  const Optimizer optimizer{.kind = kind, .learning_rate = 0.05, .momentum = momentum, .decay = 0.99};
  const std::vector<float> start = random_floats(17, 1);
  Server shard{optimizer, start};
  std::vector<std::vector<double>> gradients(17);
  for (std::uint32_t push = 0; push < 5; ++push) {
    const std::vector<float> gradient = random_floats(17, 10 + push);
    shard.apply(gradient);
    for (std::size_t i = 0; i < start.size(); ++i) gradients[i].push_back(gradient[i]);
  }
  // adagrad's and adam's first steps divide a gradient by itself: small ones lose digits
  for (std::size_t i = 0; i < start.size(); ++i) {
    CHECK(shard.parameters[i] == Approx(after(optimizer, start[i], gradients[i])).margin(1e-5));
  }
}

TEST_CASE("for plain SGD one push of a sum is as good as the pushes", "[strategies][arithmetic]") {
  const Optimizer sgd{.kind = Kind::sgd, .learning_rate = 0.25, .momentum = 0};
  const std::vector<float> start = random_floats(17, 1);
  Server one_by_one{sgd, start}, at_once{sgd, start};
  std::vector<float> sum(17);
  for (std::uint32_t batch = 0; batch < 4; ++batch) {
    const std::vector<float> gradient = random_floats(17, 20 + batch);
    one_by_one.apply(gradient);
    accumulate(gradient, sum);
  }
  at_once.apply(sum);
  for (std::size_t i = 0; i < start.size(); ++i) {
    CHECK(at_once.parameters[i] == Approx(one_by_one.parameters[i]).margin(1e-6));
  }
}

TEST_CASE("every optimizer takes the mean of a sum by its scale", "[strategies][arithmetic]") {
  const Kind kind = GENERATE(Kind::sgd, Kind::adagrad, Kind::rmsprop, Kind::adam);
  const Optimizer optimizer{.kind = kind, .learning_rate = 0.05};
  const std::vector<float> start = random_floats(17, 1);
  Server mean{optimizer, start}, sum{optimizer, start};
  for (std::uint32_t push = 0; push < 3; ++push) {
    const std::vector<float> gradient = random_floats(17, 30 + push);
    std::vector<float> four(gradient);
    for (float& one : four) one *= 4;
    mean.apply(gradient);
    sum.apply(four, 0.25F);  // both exact
  }
  CHECK(mean.parameters == sum.parameters);
}
