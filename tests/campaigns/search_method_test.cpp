#include "campaigns/search_method.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "tests/campaigns/problems.hpp"

using namespace stepcast;

TEST_CASE("a seed determines the proposed points", "[campaigns]") {
  const auto method = GENERATE(SearchMethod::bayesian, SearchMethod::evolution, SearchMethod::random);
  const auto proposals = [&](std::uint64_t seed) {
    const auto optimizer = make_optimizer(branin_space(), {method, 30, 0, seed});
    std::vector<Values> all;
    best_found(*optimizer, 25, 3, [&](const Values& x) {
      all.push_back(x);
      return -branin(x[0], x[1]);
    });
    return all;
  };
  CHECK(proposals(1) == proposals(1));
  CHECK(proposals(1) != proposals(2));
}

namespace {

/// Difference between the best of `evaluations` trials and the minimum 0 of `function`, mean over seeds.
template <class Function>
double mean_gap(SearchMethod method, const Space& space, int evaluations, Function&& function,
                std::uint64_t seeds = 8) {
  double sum = 0;
  for (std::uint64_t seed = 1; seed <= seeds; ++seed) {
    const auto optimizer = make_optimizer(space, {method, evaluations, 0, seed});
    sum -= best_found(*optimizer, evaluations, 1, [&](const Values& x) { return -function(x); });
  }
  return sum / seeds;
}

Space hypercube(int dimensions) {
  Space space;
  for (int i = 0; i < dimensions; ++i)
    space.push_back({.name = "x" + std::to_string(i), .low = -1, .high = 2});
  return space;
}

}  // namespace

TEST_CASE(
    "the gap of Bayesian optimization on Branin's function is less than a tenth of that of random search",
    "[campaigns]") {
  const auto gap = [](const Values& x) { return branin(x[0], x[1]) - kBraninMinimum; };
  const double random = mean_gap(SearchMethod::random, branin_space(), 30, gap);
  const double bayesian = mean_gap(SearchMethod::bayesian, branin_space(), 30, gap);
  CHECK(bayesian < 0.1 * random);
  CHECK(bayesian < mean_gap(SearchMethod::direct, branin_space(), 30, gap));  // NLopt's global search
}

TEST_CASE("the gap of evolution on six parameters is less than half of that of random search",
          "[campaigns]") {
  const Space space = hypercube(6);
  const auto bowl = [](const Values& x) {
    double sum = 0;
    for (const double one : x) sum += one * one;
    return sum;
  };
  const double random = mean_gap(SearchMethod::random, space, 200, bowl);
  CHECK(mean_gap(SearchMethod::evolution, space, 200, bowl) < 0.5 * random);
}

// NNLO's slides have "indications that [evolution] works better for large number of parameters and non-smooth
// objective function" than Bayesian optimization.
TEST_CASE(
    "on ten and thirty parameters and steps with ripples, Bayesian optimization is nearer than evolution",
    "[campaigns]") {
  const auto rough = [](const Values& x) {
    double sum = 0;
    for (const double one : x)
      sum += std::floor(10 * std::abs(one)) / 10 + 0.3 * std::abs(std::sin(20 * one));
    return sum;
  };
  const double bayesian = mean_gap(SearchMethod::bayesian, hypercube(10), 80, rough, 2);
  CHECK(bayesian < 0.8 * mean_gap(SearchMethod::evolution, hypercube(10), 80, rough, 2));
  CHECK(mean_gap(SearchMethod::bayesian, hypercube(30), 80, rough, 3) <
        mean_gap(SearchMethod::evolution, hypercube(30), 80, rough, 3));
}

TEST_CASE("a failed trial counts as the worst outcome", "[campaigns]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(finite_values({{{}, 3}, {{}, nan}, {{}, -2}}) == std::vector<double>{3, -2, -2});
  CHECK(finite_values({{{}, nan}}) == std::vector<double>{0});
}
