#pragma once

#include "campaigns/gaussian_process.hpp"
#include "campaigns/option_search.hpp"

namespace stepcast {

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
