#include "report/statistics/statistics.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <numbers>
#include <random>
#include <stdexcept>

using namespace stepcast;

TEST_CASE("quantile interpolates between order statistics as definition 7 does", "[report]") {
  const std::vector<double> samples{4, 1, 3, 2};
  CHECK(quantile(samples, 0) == 1);
  CHECK(quantile(samples, 1) == 4);
  CHECK(quantile(samples, 0.5) == 2.5);
  CHECK(quantile(samples, 0.25) == 1.75);
  CHECK(quantile(samples, 0.9) == Approx(3.7).epsilon(1e-12));
  CHECK(quantile({7}, 0.3) == 7);
  CHECK(median_of({3, 1, 2}) == 2);
}

TEST_CASE("quantile refuses what has no answer", "[report][errors]") {
  CHECK_THROWS_WITH(quantile({}, 0.5), "quantile: no samples");
  CHECK_THROWS_WITH(quantile({1}, 1.5), "quantile: p must be in [0, 1]");
  CHECK_THROWS_WITH(mean({}), "mean: no samples");
}

TEST_CASE("interrupted times do not count in their mean", "[report]") {
  CHECK(uninterrupted_mean({1, 2, 3, 6, 40}) == Approx(3));
  CHECK(uninterrupted_mean({5}) == 5);
}

TEST_CASE("the forecast interval of 0 .. 100 is 5, 50, 95", "[report]") {
  std::vector<double> draws;
  for (int i = 100; i >= 0; --i) draws.push_back(i);
  const auto interval = forecast_interval(draws);
  CHECK(interval.low == 5);
  CHECK(interval.median == 50);
  CHECK(interval.high == 95);
}

TEST_CASE("the bootstrap repeats itself for a seed and narrows to a constant", "[report]") {
  const std::vector<double> samples{5, 1, 4, 2, 3, 9, 7, 8, 6};
  const auto first = estimate_of(StepStatistic::median, samples, {.seed = 1});
  const auto again = estimate_of(StepStatistic::median, samples, {.seed = 1});
  CHECK(first.low == again.low);
  CHECK(first.high == again.high);
  CHECK(first.value == 5);
  CHECK(first.low < 5);
  CHECK(first.high > 5);
  const auto constant = estimate_of(StepStatistic::median, {2, 2, 2}, {.seed = 3});
  CHECK(constant.low == 2);
  CHECK(constant.high == 2);
  CHECK_THROWS_AS(estimate_of(StepStatistic::mean, {}, {}), std::invalid_argument);
}

TEST_CASE("the bootstrap interval covers the true median or mean about as often as it promises", "[report]") {
  // 400 experiments at 90 %: the standard error of the coverage is 1.5 %, the bound leaves four of them and
  // the known slight under-coverage of the percentile bootstrap.
  const auto statistic = GENERATE(StepStatistic::median, StepStatistic::mean);
  std::mt19937_64 engine(7);
  int covered = 0;
  for (std::uint64_t experiment = 0; experiment < 400; ++experiment) {
    std::vector<double> samples;
    for (int i = 0; i < 41; ++i) samples.push_back(static_cast<double>(engine() >> 11) * 0x1p-53);
    const auto interval =
        estimate_of(statistic, samples, {.seed = experiment, .resamples = 200, .confidence = 0.9});
    covered += interval.low <= 0.5 && 0.5 <= interval.high;
  }
  CHECK(covered > 0.83 * 400);
  CHECK(covered < 0.97 * 400);
}

namespace {

/// Van der Corput's sequence in `base`; several coprime bases together are Halton's.
double radical_inverse(int i, int base) {
  double value = 0;
  for (double digit = 1.0 / base; i > 0; i /= base, digit /= base) value += digit * (i % base);
  return value;
}

std::vector<std::vector<double>> halton(int draws) {
  std::vector<std::vector<double>> points;
  for (int i = 1; i <= draws; ++i) {
    points.push_back({radical_inverse(i, 2), radical_inverse(i, 3), radical_inverse(i, 5)});
  }
  return points;
}

template <class Function>
std::vector<Sensitivity> indices(int draws, Function f) {
  const auto points = halton(draws);
  std::vector<double> results;
  for (const auto& x : points) results.push_back(f(x));
  return sensitivities({"a", "b", "c"}, points, results);
}

}  // namespace

TEST_CASE("the indices of a linear function are its squared coefficients over their sum", "[report]") {
  // y = 2 a + b with uniform a, b: 4/5 and 1/5; a line is fitted without error.
  const int draws = GENERATE(64, 512);
  const double tolerance = 1e-9;
  const auto found = indices(draws, [](const auto& x) { return 2 * x[0] + x[1]; });
  REQUIRE(found.size() == 3);
  CHECK(found[0].name == "a");
  CHECK(found[0].share == Approx(0.8).margin(tolerance));
  CHECK(found[1].name == "b");
  CHECK(found[1].share == Approx(0.2).margin(tolerance));
  CHECK(found[2].share == Approx(0.0).margin(tolerance));
}

TEST_CASE("64 draws suffice for a smooth monotonic function", "[report]") {
  // y = exp(a) + b^2: variances (e^2 - 1)/2 - (e - 1)^2 = 0.2420 and 1/5 - 1/9 = 0.0889.
  const auto found = indices(64, [](const auto& x) { return std::exp(x[0]) + x[1] * x[1]; });
  CHECK(found[0].name == "a");
  CHECK(found[0].share == Approx(0.2420 / 0.3309).margin(0.01));
  CHECK(found[1].share == Approx(0.0889 / 0.3309).margin(0.01));
  CHECK(found[2].share == Approx(0).margin(0.001));
}

TEST_CASE("the indices of the Ishigami function are 0.3139, 0.4424 and 0", "[report]") {
  // T. Ishigami, T. Homma, ISUMA 1990, with a = 7, b = 0.1: closed form of its variance decomposition.
  const auto found = indices(8192, [](const auto& u) {
    const auto angle = [&](int i) { return (2 * u[i] - 1) * std::numbers::pi; };
    return std::sin(angle(0)) + 7 * std::pow(std::sin(angle(1)), 2) +
           0.1 * std::pow(angle(2), 4) * std::sin(angle(0));
  });
  CHECK(found[0].name == "b");
  CHECK(found[0].share == Approx(0.4424).margin(0.015));
  CHECK(found[1].name == "a");
  CHECK(found[1].share == Approx(0.3139).margin(0.015));
  CHECK(found[2].share == Approx(0).margin(0.015));
}

TEST_CASE("an input that acts only through another has no first-order effect", "[report]") {
  const auto found = indices(1024, [](const auto& x) { return (x[0] - 0.5) * (x[1] - 0.5); });
  for (const auto& input : found) CHECK(input.share < 0.03);
}

TEST_CASE("a result that does not vary is explained by nothing", "[report]") {
  for (const auto& input : indices(64, [](const auto&) { return 0.2318; })) CHECK(input.share == 0);
}

TEST_CASE("the indices do not depend on the unit or the offset of the result", "[report]") {
  const auto plain = indices(64, [](const auto& x) { return std::exp(x[0]) * (1 + x[1]); });
  const auto scaled = indices(64, [](const auto& x) { return 1e-9 * std::exp(x[0]) * (1 + x[1]) + 1; });
  for (std::size_t i = 0; i < 3; ++i) CHECK(scaled[i].share == Approx(plain[i].share).margin(1e-5));
}

TEST_CASE("independent noise is not taken for an effect", "[report]") {
  // 200 experiments of 64 random draws: the mean of an unbiased, then clipped estimate stays near 0.
  std::mt19937_64 engine(3);
  const auto uniform = [&] { return static_cast<double>(engine() >> 11) * 0x1p-53; };
  double sum = 0;
  for (int experiment = 0; experiment < 200; ++experiment) {
    std::vector<std::vector<double>> inputs;
    std::vector<double> results;
    for (int draw = 0; draw < 64; ++draw) {
      inputs.push_back({uniform(), uniform(), uniform()});
      results.push_back(uniform());
    }
    sum += first_order_indices(inputs, results)[0];
  }
  CHECK(sum / 200 < 0.03);
}

TEST_CASE("least_squares recovers a line, and fits it with dependent columns too", "[report]") {
  std::vector<std::vector<double>> independent, dependent;
  std::vector<double> y;
  for (int i = 0; i < 10; ++i) {
    const double x = 0.1 * i;
    independent.push_back({1, x});
    dependent.push_back({1, x, 2 * x, 1 - x});
    y.push_back(2 + 3 * x);
  }
  const auto line = least_squares(independent, y);
  CHECK(line[0] == Approx(2));
  CHECK(line[1] == Approx(3));
  const auto c = least_squares(dependent, y);
  CHECK(std::count(c.begin(), c.end(), 0.0) == 2);  // two of the four columns suffice
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto& row = dependent[i];
    CHECK(c[0] * row[0] + c[1] * row[1] + c[2] * row[2] + c[3] * row[3] == Approx(y[i]));
  }
}

TEST_CASE("first_order_indices refuses too little", "[report][errors]") {
  CHECK_THROWS_WITH(first_order_indices({{0.5}}, {1, 2}), "first_order_indices: one result a draw");
  CHECK_THROWS_WITH(first_order_indices({{0.1}, {0.2}}, {1, 2}),
                    "first_order_indices: at least 3 draws an input");
}
