#include "campaigns/gaussian_process.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/random.hpp"

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
