#include "campaigns/option_search.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <map>

using namespace stepcast;

TEST_CASE("position_of is the inverse of value_at", "[campaigns]") {
  const Parameter plain{.name = "p", .low = -2, .high = 6};
  const Parameter logarithmic{.name = "q", .low = 1, .high = 1000, .logarithmic = true};
  for (const double u : {0.0, 0.25, 0.5, 1.0}) {
    CHECK(position_of(plain, value_at(plain, u)) == Approx(u).margin(1e-12));
    CHECK(position_of(logarithmic, value_at(logarithmic, u)) == Approx(u).margin(1e-12));
  }
  CHECK(value_at(plain, 0.5) == Approx(2));
  CHECK(value_at(logarithmic, 1.0 / 3) == Approx(10));
}

TEST_CASE("every whole number and every word is drawn equally often", "[campaigns]") {
  const Space space{{.name = "n", .kind = Parameter::Kind::integer, .low = 3, .high = 6},
                    {.name = "w", .kind = Parameter::Kind::choice, .choices = {"a", "b", "c", "d"}}};
  std::map<double, int> numbers, words;
  constexpr int kDraws = 40'000;
  for (std::uint32_t i = 0; i < kDraws; ++i) {
    const Values values = random_values(space, {1, Purpose::proposal, 0, i, 0});
    ++numbers[values[0]];
    ++words[values[1]];
  }
  CHECK(numbers.size() == 4);
  CHECK(words.size() == 4);
  const double error = 5 * std::sqrt(kDraws * 0.25 * 0.75);  // five standard errors of a count
  for (const auto& [value, count] : numbers) CHECK(count == Approx(kDraws / 4).margin(error));
  for (const auto& [value, count] : words) CHECK(count == Approx(kDraws / 4).margin(error));
}

TEST_CASE("two different words are at distance 1", "[campaigns]") {
  const Space space{{.name = "x", .low = 0, .high = 2},
                    {.name = "w", .kind = Parameter::Kind::choice, .choices = {"a", "b", "c"}}};
  const auto one = features(space, {1, 0}), other = features(space, {1, 2});
  REQUIRE(one.size() == 4);
  CHECK(one[0] == 0.5);
  double square = 0;
  for (std::size_t i = 0; i < 4; ++i) square += (one[i] - other[i]) * (one[i] - other[i]);
  CHECK(square == Approx(1));
}

TEST_CASE("points are counted, and invalid spaces are refused", "[campaigns]") {
  const Parameter whole{.name = "n", .kind = Parameter::Kind::integer, .low = 1, .high = 8};
  const Parameter word{.name = "w", .kind = Parameter::Kind::choice, .choices = {"a", "b", "c"}};
  CHECK(point_count({whole, word}) == 24);
  CHECK(std::isinf(point_count({whole, {.name = "x"}})));
  CHECK_THROWS_WITH(check(Space{}), "a space needs at least one parameter");
  CHECK_THROWS_WITH(check(Space{{.name = "x", .low = 1, .high = 0}}),
                    "parameter x: the lower end of the range is above the upper end");
  CHECK_THROWS_WITH(check(Space{{.name = "x", .low = 0, .high = 1, .logarithmic = true}}),
                    "parameter x: a logarithmic range must be > 0");
  CHECK_THROWS_WITH(check(Space{{.name = "w", .kind = Parameter::Kind::choice}}),
                    "parameter w: expected at least one word to choose from");
}
