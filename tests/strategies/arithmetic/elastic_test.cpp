#include <catch2/catch.hpp>
#include <cmath>

#include "arithmetic/arrays.hpp"
#include "strategies/arithmetic/center_updates.hpp"

using namespace stepcast;
using test::random_floats;

namespace {

/// Both sides of an exchange: each moves towards what the other was.
void exchange(double force, std::vector<float>& worker, std::vector<float>& center) {
  const std::vector<float> sent = worker, read = center;
  elastic_move(force, read, worker);
  elastic_move(force, sent, center);
}

/// |x| + |y| after many steps from 1 at rate r on a loss x^2 / 2.
/// @param at_once  the step is taken at what the exchange began with
double after_training(double force, double rate, bool at_once) {
  std::vector<float> worker{1}, center{-1};
  for (int i = 0; i < 400; ++i) {
    const double step = rate * worker[0];
    if (!at_once) worker[0] = static_cast<float>(worker[0] - step);
    exchange(force, worker, center);
    if (at_once) worker[0] = static_cast<float>(worker[0] - step);
  }
  return std::abs(worker[0]) + std::abs(center[0]);
}

}  // namespace

TEST_CASE("an elastic exchange keeps worker + center", "[strategies][arithmetic]") {
  const double force = GENERATE(0.0, 0.1, 0.5, 0.9);
  const std::vector<float> worker = random_floats(23, 1), center = random_floats(23, 2);
  std::vector<float> pulled = worker, moved = center;
  exchange(force, pulled, moved);
  for (std::size_t i = 0; i < worker.size(); ++i) {
    const double difference = force * (double{worker[i]} - center[i]);
    CHECK(pulled[i] == Approx(worker[i] - difference).margin(1e-7));
    CHECK(moved[i] == Approx(center[i] + difference).margin(1e-7));
    // each side is rounded once
    CHECK(double{pulled[i]} + moved[i] == Approx(double{worker[i]} + center[i]).margin(1.2e-7));
  }
}

TEST_CASE("an elastic exchange of one half meets in the middle", "[strategies][arithmetic]") {
  std::vector<float> worker{1, -2}, center{3, 2};
  exchange(0.5, worker, center);
  CHECK(worker == std::vector<float>{2, 0});
  CHECK(center == worker);
}

TEST_CASE("exchanges that follow steps are stable for every elastic force", "[strategies][arithmetic]") {
  const double force = GENERATE(0.1, 0.5, 0.9, 1.0), rate = GENERATE(0.1, 1.0, 1.9);
  CAPTURE(force, rate);
  CHECK(after_training(force, rate, false) < 0.05);
}

TEST_CASE("exchange and step at once are stable up to (4 - 2 r) / (4 - r)", "[strategies][arithmetic]") {
  const double rate = GENERATE(0.5, 1.0, 1.5), bound = (4 - 2 * rate) / (4 - rate);
  CAPTURE(rate, bound);
  CHECK(after_training(0.95 * bound, rate, true) < 0.05);
  CHECK(after_training(1.05 * bound, rate, true) > 100);
}

TEST_CASE("an elastic move refuses arrays of two lengths", "[strategies][arithmetic]") {
  std::vector<float> two{1, 2};
  CHECK_THROWS_WITH(elastic_move(0.5, std::vector<float>{1}, two), "elastic_move: lengths differ");
}
