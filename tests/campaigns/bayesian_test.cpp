#include "campaigns/bayesian.hpp"

#include <nlopt.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numbers>
#include <set>
#include <stdexcept>

#include "core/random.hpp"
#include "tests/campaigns/problems.hpp"

using namespace stepcast;

TEST_CASE("the posterior of two points is that of the inverse of a 2 x 2 matrix", "[campaigns]") {
  const GaussianHypers hypers{Kernel::squared_exponential, {0.5}, 2, 0.1};
  const GaussianProcess process(hypers, {{0.0}, {1.0}}, {1.0, 3.0}, 0.5);
  // K = 2 [[1.1, c], [c, 1.1]], c = exp(-(1 / 0.5)^2 / 2); at x = 0.25: k = 2 (exp(-1 / 8), exp(-9 / 8)).
  const double a = 2.2, c = 2 * std::exp(-2.0), determinant = a * a - c * c;
  const double k0 = 2 * std::exp(-0.125), k1 = 2 * std::exp(-1.125);
  const double w0 = (a * 0.5 - c * 2.5) / determinant, w1 = (a * 2.5 - c * 0.5) / determinant;
  const Posterior posterior = process.at({0.25});
  CHECK(posterior.mean == Approx(0.5 + k0 * w0 + k1 * w1).epsilon(1e-12));
  CHECK(posterior.variance ==
        Approx(2 - (a * (k0 * k0 + k1 * k1) - 2 * c * k0 * k1) / determinant).epsilon(1e-12));
  const double fit = 0.5 * w0 + 2.5 * w1;
  CHECK(process.log_likelihood() ==
        Approx(-(fit + std::log(determinant) + 2 * std::log(2 * std::numbers::pi)) / 2).epsilon(1e-12));
}

TEST_CASE("without noise the posterior passes through every point with variance 0", "[campaigns]") {
  const auto kernel = GENERATE(Kernel::squared_exponential, Kernel::matern_5_2);
  const std::vector<std::vector<double>> points{{0, 0.2}, {0.4, 0.9}, {1, 0.1}};
  const std::vector<double> values{1, -2, 0.5};
  const GaussianProcess process({kernel, {0.3, 0.6}, 1.5, 0}, points, values, 0);
  for (std::size_t i = 0; i < points.size(); ++i) {
    CHECK(process.at(points[i]).mean == Approx(values[i]).margin(1e-10));
    CHECK(process.at(points[i]).variance == Approx(0).margin(1e-10));
  }
  // Far from all points the posterior is the prior.
  CHECK(process.at({100, 100}).mean == Approx(0).margin(1e-10));
  CHECK(process.at({100, 100}).variance == Approx(1.5));
}

TEST_CASE("the Matern 5/2 covariance is its formula", "[campaigns]") {
  const GaussianHypers hypers{Kernel::matern_5_2, {0.5, 2}, 3, 0};
  const double r = std::sqrt(std::pow(0.3 / 0.5, 2) + std::pow(1 / 2.0, 2));
  CHECK(covariance(hypers, {0.1, 0}, {0.4, 1}) ==
        Approx(3 * (1 + std::sqrt(5.0) * r + 5 * r * r / 3) * std::exp(-std::sqrt(5.0) * r)));
}

TEST_CASE("equal points without noise are refused", "[campaigns]") {
  CHECK_THROWS_WITH(GaussianProcess({Kernel::matern_5_2, {1}, 1, 0}, {{0.5}, {0.5}}, {1, 2}, 0),
                    "GaussianProcess: the covariance is not positive definite");
}

TEST_CASE("a point that is not a number is refused", "[campaigns]") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK_THROWS_WITH(GaussianProcess({Kernel::matern_5_2, {1}, 1, 0.1}, {{nan}, {0.5}}, {1, 2}, 0),
                    "GaussianProcess: the covariance is not positive definite");
}

TEST_CASE("the most likely hyper-parameters distinguish relevant coordinates and noise", "[campaigns]") {
  std::vector<std::vector<double>> points;
  std::vector<double> smooth, noise;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const auto [x, y] = uniform_pair({1, Purpose::proposal, i, 0, 0});
    points.push_back({x, y});
    smooth.push_back(std::sin(8 * x));
    noise.push_back(normal({1, Purpose::jitter, i, 0, 0}));
  }
  const auto of_smooth = most_likely_hypers(Kernel::matern_5_2, points, smooth, 0);
  CHECK(of_smooth.lengths[0] < of_smooth.lengths[1]);  // the second coordinate changes nothing
  CHECK(of_smooth.noise <= 1e-3);
  const auto of_noise = most_likely_hypers(Kernel::matern_5_2, points, noise, 0);
  CHECK((of_noise.noise == 0.1 || of_noise.lengths[0] == 0.05 || of_noise.lengths[1] == 0.05));

  // No other hyper-parameters of the grid's first stage are more likely.
  const double best = GaussianProcess(of_smooth, points, smooth, 0).log_likelihood();
  for (const double length : {0.1, 0.4, 1.6}) {
    GaussianHypers other = of_smooth;
    other.lengths = {length, length};
    CHECK(GaussianProcess(other, points, smooth, 0).log_likelihood() <= best);
  }
}

namespace {

/// Observations, and the hyper-parameters whose likelihood NLopt maximises.
struct Likelihood {
  std::vector<std::vector<double>> points;
  std::vector<double> values;

  double of(const GaussianHypers& hypers) const {
    return GaussianProcess(hypers, points, values, 0).log_likelihood();
  }
};

/// @param logarithms  of the length of each coordinate, the noise and the variance
double likelihood_at(unsigned count, const double* logarithms, double*, void* data) {
  GaussianHypers hypers;
  hypers.lengths.clear();
  for (unsigned i = 0; i + 2 < count; ++i) hypers.lengths.push_back(std::exp(logarithms[i]));
  hypers.noise = std::exp(logarithms[count - 2]);
  hypers.variance = std::exp(logarithms[count - 1]);
  try {
    return static_cast<const Likelihood*>(data)->of(hypers);
  } catch (const std::invalid_argument&) {
    return -1e6;  // not positive definite; NLopt is C and lets no exception through
  }
}

/// The largest likelihood that NLopt's BOBYQA finds from `start` on.
double largest_likelihood(Likelihood& likelihood, const GaussianHypers& start) {
  std::vector<double> best;
  for (const double length : start.lengths) best.push_back(std::log(length));
  best.insert(best.end(), {std::log(start.noise), std::log(start.variance)});
  const nlopt_opt optimizer = nlopt_create(NLOPT_LN_BOBYQA, best.size());
  const std::size_t lengths = start.lengths.size();
  std::vector<double> low(lengths, std::log(0.05)), high(lengths, std::log(1.6));  // the range of the grid
  low.insert(low.end(), {std::log(1e-6), std::log(1e-6)});
  high.insert(high.end(), {std::log(0.1), std::log(1e6)});
  nlopt_set_lower_bounds(optimizer, low.data());
  nlopt_set_upper_bounds(optimizer, high.data());
  nlopt_set_max_objective(optimizer, likelihood_at, &likelihood);
  nlopt_set_xtol_rel(optimizer, 1e-6);
  nlopt_set_maxeval(optimizer, 2000);
  double most = 0;
  const nlopt_result result = nlopt_optimize(optimizer, best.data(), &most);
  nlopt_destroy(optimizer);
  REQUIRE(result > 0);
  return most;
}

/// Likelihood that NLopt gains over the grid, with observations whose noise has this standard deviation.
double gain_of_nlopt(double deviation) {
  Likelihood smooth;
  for (std::uint32_t i = 0; i < 40; ++i) {
    const auto [x, y] = uniform_pair({1, Purpose::proposal, i, 0, 0});
    smooth.points.push_back({x, y});
    smooth.values.push_back(std::sin(8 * x) + 0.5 * y + deviation * normal({1, Purpose::jitter, i, 0, 0}));
  }
  const GaussianHypers hypers = most_likely_hypers(Kernel::matern_5_2, smooth.points, smooth.values, 0);
  return largest_likelihood(smooth, hypers) - smooth.of(hypers);
}

}  // namespace

TEST_CASE("NLopt finds little more likelihood than the grid if its noise is one of the grid's",
          "[campaigns]") {
  const double fitting = gain_of_nlopt(0.3);  // about 0.1 of the variance, as in the grid
  const double none = gain_of_nlopt(0),
               between = gain_of_nlopt(0.1);  // below the grid, and between its steps
  CAPTURE(fitting, none, between);
  CHECK(std::min({fitting, none, between}) >= 0);  // NLopt starts at the grid's
  CHECK(fitting < 1);
  CHECK(std::max(none, between) < 15);  // of a logarithm with 40 values: the grid is that coarse
}

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
