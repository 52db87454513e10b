#pragma once

#include "campaigns/gaussian_process.hpp"
#include "campaigns/optimizer.hpp"

namespace stepcast {

struct BayesianOptions {
  int initial = 0;        ///< points drawn before the process is trusted; 0: 2 x parameters + 2, at least 5
  int candidates = 2000;  ///< points at which the expected improvement is looked at
  Kernel kernel = Kernel::matern_5_2;
  std::uint64_t seed = 1;
};

/// Expected excess over `best` of a normal variable: s (z Phi(z) + phi(z)), z = (mean - best) / s.
/// Source: D. R. Jones, M. Schonlau, W. J. Welch, "Efficient global optimization of expensive black-box
/// functions", J. Global Optimization 13 (1998) 455-492, equation 15.
double expected_improvement(const Posterior& posterior, double best);

/// Bayesian optimization: the point of the largest expected improvement under a Gaussian process of the
/// outcomes.
///
/// Trials under way count as if they had given the best value so far (the constant liar), which keeps the
/// next one away from them. Half of the candidates are drawn evenly, half around the best point, at ever
/// smaller distances. A point that was asked for is not proposed again as long as another candidate is there.
/// Source: D. Ginsbourger, R. Le Riche, L. Carraro, "Kriging is well-suited to parallelize optimization",
/// Computational Intelligence in Expensive Optimization Problems, Springer 2010, section 4.2 (constant liar).
class Bayesian : public OptionSearch {
 public:
  Bayesian(Space space, BayesianOptions options);

  std::optional<Trial> ask() override;
  void tell(const Trial& trial, double value) override;

 private:
  Values proposal() const;
  Values around(const Values& center, std::uint32_t candidate) const;

  Space space_;
  BayesianOptions options_;
  int asked_ = 0;
  std::vector<Outcome> told_;
  std::vector<Trial> pending_;
};

}  // namespace stepcast
