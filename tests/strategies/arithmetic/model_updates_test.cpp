#include "strategies/arithmetic/model_updates.hpp"

#include <catch2/catch.hpp>
#include <cmath>

#include "arithmetic/arrays.hpp"
#include "strategies/arithmetic/optimizer.hpp"

using namespace stepcast;
using test::random_floats;

namespace {

using Form = BlockFilter::Form;

/// Rounding of floats of order 1, a few operations deep.
constexpr double kMargin = 1e-6;

void check_near(const std::vector<float>& found, const std::vector<double>& expected) {
  for (std::size_t i = 0; i < found.size(); ++i) CHECK(found[i] == Approx(expected[i]).margin(kMargin));
}

}  // namespace

TEST_CASE("block momentum 0 with block learning rate 1 is model averaging", "[strategies][arithmetic]") {
  const Form form = GENERATE(Form::classical, Form::nesterov);
  std::vector<float> global = random_floats(31, 1);
  std::vector<float> kept(global), moved(global.size());
  const BlockState state{kept, moved};
  for (std::uint32_t block = 0; block < 4; ++block) {
    const std::vector<float> mean = random_floats(31, 10 + block);
    filter_block_update({0, 1, form}, mean, state, global);
    CHECK(global == mean);
  }
}

TEST_CASE("block momentum follows the formulas of Chen and Huo", "[strategies][arithmetic]") {
  const Form form = GENERATE(Form::classical, Form::nesterov);
  const double momentum = 0.9, rate = 0.8;
  std::vector<float> global = random_floats(13, 1);
  std::vector<float> kept(global), moved(global.size());
  const BlockState state{kept, moved};
  std::vector<double> model(global.begin(), global.end()), broadcast = model, change(13);
  for (std::uint32_t block = 0; block < 5; ++block) {
    const std::vector<float> mean = random_floats(13, 20 + block);
    filter_block_update({momentum, rate, form}, mean, state, global);
    for (std::size_t i = 0; i < model.size(); ++i) {
      const double update = mean[i] - broadcast[i];
      change[i] = momentum * change[i] + rate * update;
      model[i] += change[i];
      broadcast[i] = form == Form::nesterov ? model[i] + momentum * change[i] : model[i];
    }
    check_near(global, broadcast);
    check_near(kept, model);
  }
}

TEST_CASE("the Nesterov form is DiLoCo's outer optimizer", "[strategies][arithmetic]") {
  const double momentum = 0.9, rate = 0.7;
  std::vector<float> global = random_floats(13, 1);
  std::vector<float> kept(global), moved(global.size());
  const BlockState state{kept, moved};
  std::vector<double> parameters(global.begin(), global.end()), buffer(13);
  for (std::uint32_t round = 0; round < 5; ++round) {
    const std::vector<float> mean = random_floats(13, 30 + round);
    filter_block_update({momentum, rate, Form::nesterov}, mean, state, global);
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const double gradient = parameters[i] - mean[i];  // outer gradient
      buffer[i] = momentum * buffer[i] + gradient;
      parameters[i] -= rate * (gradient + momentum * buffer[i]);
    }
    check_near(global, parameters);
  }
}

TEST_CASE("a constant update is amplified by rate / (1 - momentum) in the end", "[strategies][arithmetic]") {
  std::vector<float> global{0};
  std::vector<float> kept(global), moved(global.size());
  const BlockState state{kept, moved};
  float before = 0;
  for (int block = 0; block < 200; ++block) {
    before = global[0];
    const std::vector<float> mean{global[0] + 1};
    filter_block_update({0.9, 1, Form::classical}, mean, state, global);
  }
  CHECK(global[0] - before == Approx(10).epsilon(1e-4));  // 1,900 in single precision: steps of 1.2e-4
}

TEST_CASE("filter_block_update refuses arrays of different lengths", "[strategies][arithmetic]") {
  std::vector<float> global(3);
  std::vector<float> kept(global), moved(global.size());
  const BlockState state{kept, moved};
  CHECK_THROWS_WITH(filter_block_update({}, std::vector<float>(2), state, global),
                    "filter_block_update: lengths differ");
}

namespace {

using Kind = Optimizer::Kind;

/// One element's parameter after gradients g1, g2, ... in double precision.
double after(const Optimizer& o, double parameter, const std::vector<double>& gradients) {
  double first = 0, second = 0;
  for (std::size_t t = 1; t <= gradients.size(); ++t) {
    const double g = gradients[t - 1], steps = t;
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

/// Parameters and the state of their optimizer.
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
  // The first steps of adagrad and adam divide a gradient by itself, so small gradients lose digits.
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
