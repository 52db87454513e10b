#include <nlopt.h>

#include <catch2/catch.hpp>
#include <limits>
#include <set>

#include "campaigns/search_method.hpp"
#include "tests/campaigns/problems.hpp"

using namespace stepcast;

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
