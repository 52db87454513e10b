#pragma once

#include <vector>

#include "campaigns/option_search.hpp"

namespace stepcast {

/// Covariance functions.
enum class Kernel { squared_exponential, matern_5_2 };

/// Covariance of two points at scaled distance r, r^2 = sum over i of ((x_i - y_i) / length_i)^2:
///   squared exponential  variance exp(-r^2 / 2)
///   Matern 5/2           variance (1 + sqrt(5) r + 5 r^2 / 3) exp(-sqrt(5) r)
/// Observations carry independent noise of variance `noise` x `variance`.
/// Source: C. E. Rasmussen, C. K. I. Williams, "Gaussian processes for machine learning", MIT Press 2006,
/// chapter 4.
struct GaussianHypers {
  Kernel kernel = Kernel::matern_5_2;
  std::vector<double> lengths;  ///< length scale of each coordinate, > 0
  double variance = 1;          ///< variance of the process
  double noise = 0;             ///< variance of the noise / variance of the process
};

double covariance(const GaussianHypers& hypers, const std::vector<double>& x, const std::vector<double>& y);

/// Mean and variance of the process at a point, without the noise of an observation.
struct Posterior {
  double mean, variance;
};

/// A Gaussian process of constant mean, conditioned on observations.
///
/// With K = covariance + noise: posterior mean m + k^T K^-1 (y - m), variance k(x, x) - k^T K^-1 k.
/// Source: Rasmussen and Williams 2006, algorithm 2.1.
class GaussianProcess {
 public:
  /// @param points  shape (n, coordinates)
  /// @param values  shape (n); `mean` is the constant m
  /// @throws std::invalid_argument if the covariance is not positive definite (equal points without noise)
  GaussianProcess(GaussianHypers hypers, std::vector<std::vector<double>> points, std::vector<double> values,
                  double mean);

  Posterior at(const std::vector<double>& x) const;

  /// log p(values) = -(y - m)^T K^-1 (y - m) / 2 - log det K / 2 - n log(2 pi) / 2
  double log_likelihood() const;

  const GaussianHypers& hypers() const { return hypers_; }

 private:
  GaussianHypers hypers_;
  std::vector<std::vector<double>> points_;
  double mean_;
  std::vector<double> lower_;    ///< Cholesky factor of K, shape (n, n), column after column
  std::vector<double> weights_;  ///< K^-1 (y - m)
  double fit_;                   ///< (y - m)^T K^-1 (y - m)
};

/// Hyper-parameters of the largest marginal likelihood. First, one length for all coordinates and the noise
/// are chosen on a grid; then each length in turn, with all others kept. The variance is the best one in
/// closed form: (y - m)^T C^-1 (y - m) / n with C the covariance of variance 1. Takes (18 + 6 coordinates)
/// n^3 / 3 flop and less.
/// @param points  coordinates in [0, 1]
GaussianHypers most_likely_hypers(Kernel kernel, const std::vector<std::vector<double>>& points,
                                  const std::vector<double>& values, double mean);

/// Options of the Bayesian search.
struct BayesianOptions {
  int initial = 0;        ///< random points before the process is used; 0: 2 x parameters + 2, at least 5
  int candidates = 2000;  ///< points at which the expected improvement is evaluated
  Kernel kernel = Kernel::matern_5_2;
  std::uint64_t seed = 1;
};

/// Expected excess over `best` of a normal variable: s (z Phi(z) + phi(z)), z = (mean - best) / s.
/// Source: D. R. Jones, M. Schonlau, W. J. Welch, "Efficient global optimization of expensive black-box
/// functions", J. Global Optimization 13 (1998) 455-492, equation 15.
double expected_improvement(const Posterior& posterior, double best);

/// Bayesian optimization: proposes the point of the largest expected improvement under a Gaussian process
/// that is fitted to the outcomes.
///
/// Pending trials count as if they had given the best value so far (constant liar), which keeps the next
/// proposal away from them. Half of the candidates are drawn uniformly, half near the best point, at standard
/// deviations of 1/4, 1/16 and 1/64 of the range. A point is proposed again only if no other candidate is
/// left. Source: D. Ginsbourger, R. Le Riche, L. Carraro, "Kriging is well-suited to parallelize
/// optimization", Computational Intelligence in Expensive Optimization Problems, Springer 2010, section 4.2
/// (constant liar).
class Bayesian : public OptionSearch {
 public:
  Bayesian(Space space, BayesianOptions options);

  std::optional<Trial> ask() override;
  void tell(const Trial& trial, double value) override;

 private:
  Values proposal() const;
  Values perturbed(const Values& center, std::uint32_t candidate) const;

  Space space_;
  BayesianOptions options_;
  int asked_ = 0;
  std::vector<Outcome> outcomes_;
  std::vector<Trial> pending_;
};

}  // namespace stepcast
