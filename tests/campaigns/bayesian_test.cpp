#include "campaigns/bayesian.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <set>

#include "tests/campaigns/problems.hpp"

using namespace stepcast;

TEST_CASE("expected improvement is the mean of the excess over the best value", "[campaigns]") {
  const Posterior posterior{0.3, 0.49};
  double sum = 0;
  constexpr int kPoints = 200'000;
  for (int i = 0; i < kPoints; ++i) {  // midpoint rule over z from -10 to 10
    const double z = -10 + 20 * (i + 0.5) / kPoints;
    const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
    sum += std::max(0.3 + 0.7 * z - 0.8, 0.0) * density * 20 / kPoints;
  }
  CHECK(expected_improvement(posterior, 0.8) == Approx(sum).epsilon(1e-8));
  CHECK(expected_improvement({1.5, 0}, 1) == 0.5);
  CHECK(expected_improvement({0.5, 0}, 1) == 0);
}

TEST_CASE("Bayesian optimization finds a minimum of Branin's function in 40 trials", "[campaigns]") {
  const std::uint64_t seed = GENERATE(1, 2, 3);
  const int at_once = GENERATE(1, 4);
  CAPTURE(seed, at_once);
  Bayesian optimizer(branin_space(), {.seed = seed});
  const double best = best_found(optimizer, 40, at_once, [](const Values& x) { return -branin(x[0], x[1]); });
  CHECK(-best < kBraninMinimum + 0.1);  // random search: 0.397887 + 1.6 on average
}

TEST_CASE("pending trials are kept apart", "[campaigns]") {
  Bayesian optimizer(branin_space(), {.seed = 5});
  best_found(optimizer, 12, 1, [](const Values& x) { return -branin(x[0], x[1]); });
  std::vector<Values> pending;
  for (int i = 0; i < 4; ++i) pending.push_back(optimizer.ask()->values);
  for (std::size_t i = 0; i < pending.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      CHECK(std::hypot(pending[i][0] - pending[j][0], pending[i][1] - pending[j][1]) > 0.15);
    }
  }
}

TEST_CASE("a finite space is searched without asking twice", "[campaigns]") {
  const Space space{{.name = "n", .kind = Parameter::Kind::integer, .low = 1, .high = 4},
                    {.name = "word", .kind = Parameter::Kind::choice, .choices = {"a", "b", "c"}}};
  Bayesian optimizer(space, {.initial = 1});
  std::set<Values> seen;
  best_found(optimizer, 12, 1, [&](const Values& x) {
    seen.insert(x);
    return x[0] - x[1];
  });
  CHECK(seen.size() == 12);
}

TEST_CASE("failed trials do not break the search", "[campaigns]") {
  Bayesian optimizer(branin_space(), {.seed = 1});
  const double best = best_found(optimizer, 40, 2, [](const Values& x) {
    return x[0] < 0 ? std::numeric_limits<double>::quiet_NaN() : -branin(x[0], x[1]);
  });
  CHECK(-best < kBraninMinimum + 0.2);
}

TEST_CASE("a result for a trial that is not pending is refused", "[campaigns]") {
  Bayesian optimizer(branin_space(), {});
  const Trial trial = *optimizer.ask();
  optimizer.tell(trial, 1);
  CHECK_THROWS_WITH(optimizer.tell(trial, 1), "Bayesian: result for an unknown trial");
}
