#include <catch2/catch.hpp>

#include "arithmetic/arrays.hpp"
#include "strategies/arithmetic/center_updates.hpp"

using namespace stepcast;
using test::random_floats;

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
