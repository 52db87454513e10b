#include "campaigns/search_method.hpp"

#include <nlopt.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <set>
#include <string>

#include "campaigns/evolution.hpp"
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

namespace {

/// Branin's function for NLopt, which writes down where it was called.
double recorded_branin(unsigned, const double* x, double*, void* points) {
  static_cast<std::vector<Values>*>(points)->push_back({x[0], x[1]});
  return -branin(x[0], x[1]);
}

std::vector<Values> points_of_nlopt(int evaluations) {
  std::vector<Values> points;
  const nlopt_opt optimizer = nlopt_create(NLOPT_GN_DIRECT_L, 2);
  const double low[] = {-5, 0}, high[] = {10, 15};
  nlopt_set_lower_bounds(optimizer, low);
  nlopt_set_upper_bounds(optimizer, high);
  nlopt_set_max_objective(optimizer, recorded_branin, &points);
  nlopt_set_maxeval(optimizer, evaluations);
  double best[] = {0, 0}, most = 0;
  nlopt_optimize(optimizer, best, &most);
  nlopt_destroy(optimizer);
  return points;
}

}  // namespace

TEST_CASE("DIRECT-L asks for the points at which NLopt alone calls the function", "[campaigns]") {
  Direct search(branin_space(), 1);
  const auto expected = points_of_nlopt(100);
  REQUIRE(expected.size() == 100);
  for (const Values& point : expected) {
    const auto trial = search.ask();
    REQUIRE(trial);
    CHECK(trial->values[0] == Approx(point[0]).margin(1e-9));
    CHECK(trial->values[1] == Approx(point[1]).margin(1e-9));
    search.tell(*trial, -branin(trial->values[0], trial->values[1]));
  }
}

TEST_CASE("DIRECT-L comes within 0.001 of the minimum of Branin's function in 100 evaluations",
          "[campaigns]") {
  Direct search(branin_space(), 1);
  const double best =
      best_found(search, 100, 4, [](const Values& values) { return -branin(values[0], values[1]); });
  CHECK(-best - kBraninMinimum < 1e-3);
}

TEST_CASE("DIRECT-L has one trial pending, and sees every point of a finite space", "[campaigns]") {
  const Space space{{.name = "n", .kind = Parameter::Kind::integer, .low = 1, .high = 4},
                    {.name = "word", .kind = Parameter::Kind::choice, .choices = {"a", "b", "c"}}};
  Direct search(space, 1);
  std::set<Values> seen;
  for (int i = 0; i < 200; ++i) {
    const auto trial = search.ask();
    REQUIRE(trial);
    CHECK_FALSE(search.ask());
    CHECK_THROWS_AS(search.tell({trial->number + 1, {}}, 0), std::invalid_argument);
    seen.insert(trial->values);
    search.tell(*trial, trial->values[0]);
    CHECK_THROWS_AS(search.tell(*trial, 0), std::invalid_argument);
  }
  CHECK(static_cast<double>(seen.size()) == point_count(space));
}

TEST_CASE("DIRECT-L goes on after trials that failed", "[campaigns]") {
  const auto failing = [](const Values& x) {
    return x[1] > 6 ? std::numeric_limits<double>::quiet_NaN() : -branin(x[0], x[1]);
  };
  Direct search(branin_space(), 1);
  CHECK(best_found(search, 200, 1, failing) > -kBraninMinimum - 0.01);
}

TEST_CASE("a child lies beyond its fitter parent, away from the other", "[campaigns]") {
  CHECK(crossover(3, 1, 0.25) == 0.25 * (3 - 1) + 3);
  CHECK(crossover(1, 3, 0.5) == 0.0);
  CHECK(crossover(2, 2, 0.7) == 2);
}

TEST_CASE("a mutation moves towards an end of the range by 1 - r1^((1 - g/G)^3)", "[campaigns]") {
  const double share = 1 - std::pow(0.3, std::pow(1 - 2 / 8.0, 3));
  CHECK(mutated(4, 0, 10, {0.3, 0.51, 2, 8}) == Approx(4 + share * 6));
  CHECK(mutated(4, 0, 10, {0.3, 0.50, 2, 8}) == Approx(4 - share * 4));
  CHECK(mutated(4, 0, 10, {0.3, 0.9, 8, 8}) == 4);                    // the last generation does not mutate
  CHECK(mutated(4, 0, 10, {0.3, 0.9, 0, 8}) == Approx(4 + 0.7 * 6));  // the first evenly
}

TEST_CASE("a generation is bred after all results of the last one, and its fittest stay", "[campaigns]") {
  Evolution optimizer(branin_space(), {.population = 10, .generations = 3, .seed = 2});
  std::vector<Trial> first;
  while (const auto trial = optimizer.ask()) first.push_back(*trial);
  REQUIRE(first.size() == 10);
  for (std::size_t i = 0; i + 1 < first.size(); ++i) {
    optimizer.tell(first[i], i);
    CHECK_FALSE(optimizer.ask());
  }
  optimizer.tell(first[9], 9);
  CHECK(optimizer.generation() == 0);
  std::vector<Trial> second;
  while (const auto trial = optimizer.ask()) second.push_back(*trial);
  CHECK(optimizer.generation() == 1);
  CHECK(second.size() == 8);  // 20 % of 10 stay and are not proposed again
  CHECK_THROWS_WITH(optimizer.tell(first[9], 9), "Evolution: result for an unknown trial");
}

TEST_CASE("children stay inside their range, integers stay integers, and words stay known words",
          "[campaigns]") {
  const Space space{{.name = "real", .low = 1e-4, .high = 1e-1, .logarithmic = true},
                    {.name = "whole", .kind = Parameter::Kind::integer, .low = -2, .high = 3},
                    {.name = "word", .kind = Parameter::Kind::choice, .choices = {"a", "b", "c"}}};
  Evolution optimizer(space, {.population = 20, .generations = 10, .seed = 4});
  std::vector<int> words(3);
  best_found(optimizer, 180, 20, [&](const Values& x) {
    REQUIRE((x[0] >= 1e-4 && x[0] <= 1e-1));
    REQUIRE((x[1] >= -2 && x[1] <= 3 && x[1] == std::round(x[1])));
    REQUIRE((x[2] == 0 || x[2] == 1 || x[2] == 2));
    ++words[x[2]];
    return -std::abs(std::log(x[0] / 1e-2)) - std::abs(x[1] - 1) - (x[2] == 1 ? 0 : 1);
  });
  CHECK(words[1] > words[0]);
  CHECK(words[1] > words[2]);
}

TEST_CASE("evolution finds a minimum of Branin's function in 300 trials", "[campaigns]") {
  const std::uint64_t seed = GENERATE(1, 2, 3);
  CAPTURE(seed);
  Evolution optimizer(branin_space(), {.population = 20, .generations = 17, .seed = seed});
  const double best = best_found(optimizer, 300, 20, [](const Values& x) { return -branin(x[0], x[1]); });
  CHECK(-best < kBraninMinimum + 0.1);
}

TEST_CASE("an evolution needs a population of at least three", "[campaigns]") {
  CHECK_THROWS_WITH(Evolution(branin_space(), {.population = 2}), "Evolution: population must be >= 3");
  CHECK_THROWS_WITH(Evolution(branin_space(), {.generations = 0}), "Evolution: generations must be >= 1");
}
