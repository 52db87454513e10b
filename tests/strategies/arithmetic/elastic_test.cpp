#include <catch2/catch.hpp>
#include <cmath>

#include "arithmetic/arrays.hpp"
#include "strategies/arithmetic/model_updates.hpp"

using namespace stepcast;
using test::random_floats;

namespace {

/// Moves both sides of an exchange, each towards the value that the other had before.
void exchange(double force, std::vector<float>& worker, std::vector<float>& center) {
  const std::vector<float> sent = worker, read = center;
  elastic_move(force, read, worker);
  elastic_move(force, sent, center);
}

/// |x| + |y| after many steps from 1 at rate r on a loss x^2 / 2.
/// @param at_once  the step is taken at the values before the exchange
double after_training(double force, double rate, bool at_once) {
  std::vector<float> worker{1}, center{-1};
  for (int i = 0; i < 400; ++i) {
    const double step = rate * worker[0];
    if (!at_once) worker[0] = worker[0] - step;
    exchange(force, worker, center);
    if (at_once) worker[0] = worker[0] - step;
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
    // Each side is rounded once.
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

TEST_CASE("energy matching spends what the proxy's energy leaves", "[strategies][arithmetic]") {
  const EnergyMatching options{.learning_rate = 0.1, .momentum = 0.9, .kappa = 2};
  std::vector<float> center = random_floats(29, 1);
  std::vector<float> velocity(29), seen(center), update(29);
  const EnergyMatchingState state{velocity, seen};
  std::vector<double> proxy(29);
  int neither_cut = 0;
  for (std::uint32_t step = 0; step < 6; ++step) {
    const std::vector<float> gradient = random_floats(29, 10 + step), others = random_floats(29, 50 + step);
    const std::vector<float> before = center;
    for (std::size_t i = 0; i < center.size(); ++i) center[i] += 0.1F * others[i];
    match_energy(options, gradient, center, state, update);
    for (std::size_t i = 0; i < center.size(); ++i) {
      const double own = -0.1 * gradient[i];
      proxy[i] = 0.9 * proxy[i] + own;
      const double moved = std::abs(double{center[i]} - before[i]), energy = 2 * std::abs(proxy[i]);
      CHECK(update[i] * own >= 0);  // never against the gradient
      if (moved >= energy) {
        CHECK(update[i] == 0);  // the others have spent it all
      } else if (energy - moved < 5 * std::abs(own)) {
        ++neither_cut;
        CHECK(moved + std::abs(update[i]) == Approx(energy).margin(1e-6));
      } else {
        CHECK(std::abs(update[i]) == Approx(5 * std::abs(own)).margin(1e-6));
      }
    }
  }
  CHECK(neither_cut > 20);
}

TEST_CASE("with kappa 1, no momentum and a center at rest, energy matching is SGD",
          "[strategies][arithmetic]") {
  const std::vector<float> center = random_floats(9, 1), gradient = random_floats(9, 2);
  std::vector<float> velocity(9), seen(center), update(9);
  const EnergyMatchingState state{velocity, seen};
  match_energy({.learning_rate = 0.5, .momentum = 0, .kappa = 1}, gradient, center, state, update);
  for (std::size_t i = 0; i < update.size(); ++i)
    CHECK(update[i] == Approx(-0.5 * gradient[i]).epsilon(1e-6));
}

TEST_CASE("a gradient of zero sends no update", "[strategies][arithmetic]") {
  std::vector<float> velocity{3}, seen{1}, update{7};
  const EnergyMatchingState state{velocity, seen};
  match_energy({}, std::vector<float>{0}, std::vector<float>{1}, state, update);
  CHECK(update[0] == 0);
}
