#include <nlopt.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "arithmetic/arrays.hpp"
#include "arithmetic/lbfgs_reference.hpp"

using namespace stepcast;
using test::lbfgs_direction;
using test::random_floats;
using test::remember;

namespace {

/// The function f = sum of w x^2 / 2, whose gradient is w x.
const std::vector<double> kCurvature{1, 3, 10, 0.5};

std::vector<float> gradient_at(const std::vector<float>& x) {
  std::vector<float> gradient;
  for (std::size_t i = 0; i < x.size(); ++i) gradient.push_back(kCurvature[i] * x[i]);
  return gradient;
}

/// The distance along `direction` at which f is least.
double exact_step(const std::vector<float>& gradient, const std::vector<float>& direction) {
  double slope = 0, curvature = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) {
    slope += double{gradient[i]} * direction[i];
    curvature += kCurvature[i] * direction[i] * direction[i];
  }
  return -slope / curvature;
}

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += double{value} * value;
  return std::sqrt(sum);
}

}  // namespace

TEST_CASE("without a history the direction is steepest descent", "[strategies][arithmetic]") {
  CHECK(lbfgs_direction({}, std::vector<float>{1, -2}) == std::vector<float>{-1, 2});
}

TEST_CASE("with one pair the direction meets the secant equation", "[strategies][arithmetic]") {
  LbfgsHistory history;
  const std::vector<float> step{0.5, 1, -1}, change{1, 3, 0.25};
  remember(history, 1, {step, change});
  REQUIRE(history.size() == 1);
  const std::vector<float> direction = lbfgs_direction(history, change);  // -H y = -s
  for (std::size_t i = 0; i < step.size(); ++i) CHECK(direction[i] == Approx(-step[i]).margin(1e-6));
}

TEST_CASE("on a quadratic, L-BFGS that remembers enough ends after as many steps as there are variables",
          "[strategies][arithmetic]") {
  std::vector<float> x{1, -1, 2, 4};
  LbfgsHistory history;
  const double start = norm(gradient_at(x));
  for (int step = 0; step < 4; ++step) {
    const auto before = x;
    const auto gradient = gradient_at(x), direction = lbfgs_direction(history, gradient);
    const double length = exact_step(gradient, direction);
    LbfgsPair pair;
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = x[i] + length * direction[i];
      pair.step.push_back(x[i] - before[i]);
    }
    const auto after = gradient_at(x);
    for (std::size_t i = 0; i < x.size(); ++i) pair.change.push_back(after[i] - gradient[i]);
    if (step < 3) CHECK(norm(after) > 1e-3 * start);
    remember(history, 4, pair);
  }
  CHECK(norm(gradient_at(x)) < 1e-5 * start);
}

TEST_CASE("the history keeps the newest pairs, and none of negative curvature", "[strategies][arithmetic]") {
  LbfgsHistory history;
  for (const float size : {1.0F, 2.0F, 3.0F}) remember(history, 2, {{size}, {size}});
  remember(history, 2, {{1}, {-1}});
  REQUIRE(history.size() == 2);
  CHECK(history[0].step == std::vector<float>{2});
  CHECK(history[1].step == std::vector<float>{3});
}

TEST_CASE("a batch of Sandblaster counts the vector operations of the two loops",
          "[strategies][arithmetic]") {
  const int pairs = GENERATE(1, 3, 10);
  LbfgsHistory history;
  for (int i = 0; i < pairs; ++i) {
    const auto step = random_floats(5, i + 1);
    remember(history, pairs, {step, step});
  }
  REQUIRE(std::ssize(history) == pairs);
  int operations = 0;
  lbfgs_direction(history, random_floats(5, 99), &operations);
  CHECK(operations + 3 == lbfgs_operations(pairs));  // then the step and the two differences
}

namespace {

constexpr int kWeights = 5, kSamples = 40;

/// The mean of the logistic loss over random samples, half of which are of the other class, with weight
/// decay. @param gradient  set unless null
double logistic_loss(const double* weights, double* gradient) {
  double loss = 0;
  for (int i = 0; gradient != nullptr && i < kWeights; ++i) gradient[i] = 0.01 * weights[i];
  for (int i = 0; i < kWeights; ++i) loss += 0.005 * weights[i] * weights[i];
  for (std::uint32_t sample = 0; sample < kSamples; ++sample) {
    const auto features = random_floats(kWeights, sample + 1);
    const double sign = sample % 2 == 0 ? 1 : -1;
    double margin = 0;
    for (int i = 0; i < kWeights; ++i) margin += sign * weights[i] * features[i];
    loss += std::log1p(std::exp(-margin)) / kSamples;
    for (int i = 0; gradient != nullptr && i < kWeights; ++i)
      gradient[i] -= sign * features[i] / (1 + std::exp(margin)) / kSamples;
  }
  return loss;
}

std::vector<float> logistic_gradient(const std::vector<float>& weights) {
  const std::vector<double> exact(weights.begin(), weights.end());
  std::vector<double> gradient(kWeights);
  logistic_loss(exact.data(), gradient.data());
  return {gradient.begin(), gradient.end()};
}

double slope(const std::vector<float>& gradient, const std::vector<float>& direction) {
  double sum = 0;
  for (std::size_t i = 0; i < gradient.size(); ++i) sum += double{gradient[i]} * direction[i];
  return sum;
}

}  // namespace

TEST_CASE("L-BFGS with its line search ends where NLopt's L-BFGS ends", "[strategies][arithmetic]") {
  std::vector<float> x(kWeights, 0.5F), gradient = logistic_gradient(x);
  LbfgsHistory history;
  for (int step = 0; step < 40 && norm(gradient) > 1e-6; ++step) {
    const auto direction = lbfgs_direction(history, gradient);
    LineSearch search;
    search.slope = slope(gradient, direction);
    std::vector<float> next, after;
    do {
      next = x;
      for (std::size_t i = 0; i < x.size(); ++i)
        next[i] += static_cast<float>(search.length * double{direction[i]});
      after = logistic_gradient(next);
    } while (!search.accepts(slope(after, direction)));
    LbfgsPair pair;
    for (std::size_t i = 0; i < x.size(); ++i) {
      pair.step.push_back(next[i] - x[i]);
      pair.change.push_back(after[i] - gradient[i]);
    }
    remember(history, 4, pair);
    x = next;
    gradient = after;
  }

  const nlopt_opt reference = nlopt_create(NLOPT_LD_LBFGS, kWeights);
  nlopt_set_min_objective(
      reference, [](unsigned, const double* at, double* slopes, void*) { return logistic_loss(at, slopes); },
      nullptr);
  nlopt_set_xtol_rel(reference, 1e-9);
  std::vector<double> best(kWeights, 0.5);
  double least = 0;
  CHECK(nlopt_optimize(reference, best.data(), &least) > 0);
  nlopt_destroy(reference);

  const std::vector<double> ours(x.begin(), x.end());
  CHECK(logistic_loss(ours.data(), nullptr) ==
        Approx(least).epsilon(1e-6));  // gradients are of single precision
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(ours[i] == Approx(best[i]).margin(1e-3));
}

TEST_CASE("a line search on a parabola ends where the slope has become small", "[strategies][arithmetic]") {
  const double least = GENERATE(0.01, 0.6, 1.0, 3.0, 500.0);  // f(a) = (a - least)^2 / 2
  LineSearch search{.slope = -least};
  while (!search.accepts(search.length - least)) {
  }
  CHECK(search.trials < 12);
  const double share = (search.length - least) / -least;  // of the slope at the start
  CHECK(share <= 0.9);
  CHECK(share >= -0.8);
}

TEST_CASE("a derivative that is not finite means that the step is too long", "[strategies][arithmetic]") {
  LineSearch search{.slope = -1, .length = 8};
  CHECK_FALSE(search.accepts(std::nan("")));
  CHECK(search.length == 4);
  CHECK_FALSE(search.accepts(HUGE_VAL));
  CHECK(search.length == 2);
  CHECK(search.accepts(0));
}

TEST_CASE("a line search without an end accepts after its last trial", "[strategies][arithmetic]") {
  LineSearch search{.slope = -1};
  for (int i = 0; i < LineSearch::kMaxRefused; ++i) CHECK_FALSE(search.accepts(1));
  CHECK(search.accepts(1));
}
