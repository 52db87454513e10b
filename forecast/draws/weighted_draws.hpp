#pragma once

#include <cstddef>
#include <vector>

namespace stepcast {

/// The value below which a standard normal variable lies with probability `u`.
double normal_quantile(double u);

/// Weights with the sum 1 from logarithms, each first multiplied by `power`.
std::vector<double> weights_of(const std::vector<double>& logs, double power = 1);

/// 1 / sum of the squared weights: the number of equally weighted draws that would say as much.
/// Source: A. Kong, J. Liu, W. Wong, JASA 89 (1994).
double effective_draws(const std::vector<double>& weights);

/// Indices of `count` draws, each as often as its weight says, by systematic resampling without chance.
std::vector<std::size_t> resampled(const std::vector<double>& weights, std::size_t count);

/// A second round of draws around the weighted first ones: in each assumption a normal distribution with
/// their mean and 1.5 times their standard deviation, cut off at the ends of the range.
struct Proposal {
  std::vector<double> mean, deviation;  ///< by assumption, in [0, 1)
};

/// The power on the weights is lowered until they stand for a quarter of the draws.
Proposal proposal_around(const std::vector<std::vector<double>>& inputs, const std::vector<double>& logs);

/// The inputs at a point of the unit cube, and the logarithm of their density.
std::vector<double> proposed(const Proposal& proposal, const std::vector<double>& cube);
double log_density(const Proposal& proposal, const std::vector<double>& inputs);

}  // namespace stepcast
