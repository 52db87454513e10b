#include "campaigns/evolution.hpp"

#include <catch2/catch.hpp>

#include "tests/campaigns/problems.hpp"

using namespace stepcast;

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
