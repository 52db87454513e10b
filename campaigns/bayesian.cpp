#include "campaigns/bayesian.hpp"

#include <Eigen/Cholesky>
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>
#include <stdexcept>

namespace stepcast {

namespace {

constexpr double kLengths[] = {0.05, 0.1, 0.2, 0.4, 0.8, 1.6};
constexpr double kNoises[] = {1e-6, 1e-3, 1e-1};

/// Lower Cholesky factor of the covariance of the points with noise, shape (n, n), column after column. The
/// cells above the diagonal are zero. Empty where the covariance is not positive definite.
std::optional<std::vector<double>> factor(const GaussianHypers& hypers,
                                          const std::vector<std::vector<double>>& points) {
  const std::size_t n = points.size();
  std::vector<double> cells(n * n);
  for (std::size_t column = 0; column < n; ++column) {
    for (std::size_t row = column; row < n; ++row) {
      cells[column * n + row] = covariance(hypers, points[row], points[column]);
    }
    cells[column * n + column] += hypers.noise * hypers.variance;
  }
  const Eigen::Index size = n;
  Eigen::Map<Eigen::MatrixXd> matrix(cells.data(), size, size);
  const Eigen::LLT<Eigen::Ref<Eigen::MatrixXd>> in_place(matrix);
  // Eigen reports pivots <= 0 only; a pivot that is not a number has to be refused too.
  if (in_place.info() != Eigen::Success || !(matrix.diagonal().array() > 0).all()) return std::nullopt;
  return cells;
}

Eigen::Map<const Eigen::MatrixXd> square_matrix(const std::vector<double>& cells, std::size_t n) {
  const Eigen::Index size = n;
  return {cells.data(), size, size};
}

Eigen::Map<Eigen::VectorXd> vector_of(std::vector<double>& values) {
  return {values.data(), static_cast<Eigen::Index>(values.size())};
}

/// x with L x = b for the lower triangular matrix L.
std::vector<double> solve_lower(const std::vector<double>& lower, std::vector<double> b) {
  auto x = vector_of(b);
  square_matrix(lower, b.size()).triangularView<Eigen::Lower>().solveInPlace(x);
  return b;
}

/// x with L^T x = b for the lower triangular matrix L.
std::vector<double> solve_upper(const std::vector<double>& lower, std::vector<double> b) {
  auto x = vector_of(b);
  square_matrix(lower, b.size()).transpose().triangularView<Eigen::Upper>().solveInPlace(x);
  return b;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Logarithm of the determinant of L L^T. @param n  rows of L
double log_determinant(const std::vector<double>& lower, std::size_t n) {
  double sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += 2 * std::log(lower[i * n + i]);
  return sum;
}

std::vector<double> minus(std::vector<double> values, double mean) {
  for (double& value : values) value -= mean;
  return values;
}

/// Search for the hyper-parameters of the largest marginal likelihood.
class LikelihoodSearch {
 public:
  LikelihoodSearch(const std::vector<std::vector<double>>& points, std::vector<double> residuals)
      : points_(points), residuals_(std::move(residuals)) {}

  void consider(GaussianHypers hypers) {
    hypers.variance = 1;
    const auto lower = factor(hypers, points_);
    if (!lower) return;
    const auto whitened = solve_lower(*lower, residuals_);
    const double n = residuals_.size();
    hypers.variance = std::max(dot(whitened, whitened) / n, 1e-12);
    const double likelihood = -n * std::log(hypers.variance) - log_determinant(*lower, residuals_.size());
    if (likelihood <= best_likelihood_) return;
    best_likelihood_ = likelihood;
    best_ = std::move(hypers);
  }
  const GaussianHypers& best() const { return best_; }

 private:
  const std::vector<std::vector<double>>& points_;
  std::vector<double> residuals_;
  GaussianHypers best_;
  double best_likelihood_ = -std::numeric_limits<double>::infinity();
};

}  // namespace

double covariance(const GaussianHypers& hypers, const std::vector<double>& x, const std::vector<double>& y) {
  double square = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double scaled = (x[i] - y[i]) / hypers.lengths[i];
    square += scaled * scaled;
  }
  if (hypers.kernel == Kernel::squared_exponential) return hypers.variance * std::exp(-square / 2);
  const double r = std::sqrt(5 * square);
  return hypers.variance * (1 + r + r * r / 3) * std::exp(-r);
}

GaussianProcess::GaussianProcess(GaussianHypers hypers, std::vector<std::vector<double>> points,
                                 std::vector<double> values, double mean)
    : hypers_(std::move(hypers)), points_(std::move(points)), mean_(mean), fit_(0) {
  auto lower = factor(hypers_, points_);
  if (!lower) throw std::invalid_argument("GaussianProcess: the covariance is not positive definite");
  lower_ = std::move(*lower);
  const auto whitened = solve_lower(lower_, minus(std::move(values), mean));
  fit_ = dot(whitened, whitened);
  weights_ = solve_upper(lower_, whitened);
}

Posterior GaussianProcess::at(const std::vector<double>& x) const {
  std::vector<double> k(points_.size());
  for (std::size_t i = 0; i < points_.size(); ++i) k[i] = covariance(hypers_, x, points_[i]);
  const double mean = mean_ + dot(k, weights_);
  const auto whitened = solve_lower(lower_, std::move(k));
  return {mean, std::max(hypers_.variance - dot(whitened, whitened), 0.0)};
}

double GaussianProcess::log_likelihood() const {
  const double n = points_.size();
  return -(fit_ + log_determinant(lower_, points_.size()) + n * std::log(2 * std::numbers::pi)) / 2;
}

GaussianHypers most_likely_hypers(Kernel kernel, const std::vector<std::vector<double>>& points,
                                  const std::vector<double>& values, double mean) {
  const std::size_t coordinates = points.at(0).size();
  LikelihoodSearch search(points, minus(values, mean));
  for (const double length : kLengths) {
    for (const double noise : kNoises) {
      search.consider({kernel, std::vector<double>(coordinates, length), 1, noise});
    }
  }
  for (std::size_t i = 0; coordinates > 1 && i < coordinates; ++i) {
    const GaussianHypers start = search.best();
    for (const double length : kLengths) {
      GaussianHypers hypers = start;
      hypers.lengths[i] = length;
      search.consider(std::move(hypers));
    }
  }
  return search.best();
}

namespace {

/// Scales the values to mean 0 and variance 1, so that one grid of hyper-parameters fits values of any size.
std::vector<double> standardized(std::vector<double> values) {
  double sum = 0, squares = 0;
  for (const double value : values) sum += value;
  const double mean = sum / values.size();
  for (double& value : values) squares += (value - mean) * (value - mean);
  const double deviation = std::sqrt(squares / values.size());
  for (double& value : values) value = deviation > 0 ? (value - mean) / deviation : 0;
  return values;
}

}  // namespace

double expected_improvement(const Posterior& posterior, double best) {
  const double deviation = std::sqrt(posterior.variance);
  const double excess = posterior.mean - best;
  if (deviation == 0) return std::max(excess, 0.0);
  const double z = excess / deviation;
  const double density = std::exp(-z * z / 2) / std::sqrt(2 * std::numbers::pi);
  const double below = std::erfc(-z / std::numbers::sqrt2) / 2;
  return deviation * (z * below + density);
}

Bayesian::Bayesian(Space space, BayesianOptions options) : space_(std::move(space)), options_(options) {
  check(space_);
  if (options_.initial == 0) options_.initial = std::max<int>(5, 2 * space_.size() + 2);
}

std::optional<Trial> Bayesian::ask() {
  const bool blind = asked_ < options_.initial || outcomes_.empty();
  const RandomKey key{options_.seed, Purpose::proposal, 0, static_cast<std::uint32_t>(asked_), 0};
  pending_.push_back({asked_++, blind ? random_values(space_, key) : proposal()});
  return pending_.back();
}

void Bayesian::tell(const Trial& trial, double value) {
  const auto found = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const Trial& one) { return one.number == trial.number; });
  if (found == pending_.end()) throw std::invalid_argument("Bayesian: result for an unknown trial");
  outcomes_.push_back({*found, value});
  pending_.erase(found);
}

/// Moves each parameter with probability 1/2 by a normal step, whose standard deviation is 1/4, 1/16 or 1/64
/// of the range.
Values Bayesian::perturbed(const Values& center, std::uint32_t candidate) const {
  Values values = center;
  const double reach = std::pow(0.25, 1.0 + candidate % 3);
  RandomKey key{options_.seed, Purpose::candidate, candidate, static_cast<std::uint32_t>(asked_), 0};
  for (std::size_t i = 0; i < space_.size(); ++i, key.item += 2) {
    const auto [chance, word] = uniform_pair(key);
    if (chance < 0.5) continue;
    const bool choice = space_[i].kind == Parameter::Kind::choice;
    RandomKey step = key;
    ++step.item;
    const double moved = choice ? word : position_of(space_[i], values[i]) + reach * normal(step);
    values[i] = value_at(space_[i], std::clamp(moved, 0.0, 1.0));
  }
  return values;
}

Values Bayesian::proposal() const {
  auto values = standardized(finite_values(outcomes_));
  const auto best = std::max_element(values.begin(), values.end());
  const double target = *best;
  const Values center = outcomes_[best - values.begin()].trial.values;

  std::vector<std::vector<double>> points;
  std::vector<Values> taken;
  for (const Outcome& outcome : outcomes_) taken.push_back(outcome.trial.values);
  for (const Values& one : taken) points.push_back(features(space_, one));
  const GaussianHypers hypers = most_likely_hypers(options_.kernel, points, values, 0);
  for (const Trial& trial : pending_) {
    taken.push_back(trial.values);
    points.push_back(features(space_, trial.values));
    values.push_back(target);
  }
  const GaussianProcess process(hypers, std::move(points), std::move(values), 0);

  Values chosen;
  double most = -1;
  for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(options_.candidates); ++i) {
    RandomKey key{options_.seed, Purpose::proposal, 1 + i, static_cast<std::uint32_t>(asked_), 0};
    Values candidate = i % 2 == 0 ? random_values(space_, key) : perturbed(center, i);
    const bool again = std::find(taken.begin(), taken.end(), candidate) != taken.end();
    const double improvement =
        again ? -0.5 : expected_improvement(process.at(features(space_, candidate)), target);
    if (improvement <= most) continue;
    most = improvement;
    chosen = std::move(candidate);
  }
  return chosen;
}

}  // namespace stepcast
