#include "strategies/arithmetic/block_momentum.hpp"

#include <catch2/catch.hpp>

#include "arithmetic/arrays.hpp"

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
