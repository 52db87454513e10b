#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace stepcast {

/// The p-quantile of the samples, p in [0, 1]: linear interpolation between order statistics at h = (n - 1)
/// p, the default of R and NumPy. Source: R. J. Hyndman, Y. Fan, "Sample Quantiles in Statistical Packages",
/// The American Statistician 50(4), 1996, definition 7.
/// @throws std::invalid_argument without samples or for p outside [0, 1]
double quantile(std::vector<double> samples, double p);

double median_of(std::vector<double> samples);

/// The arithmetic mean. @throws std::invalid_argument without samples
double mean(const std::vector<double>& samples);

/// Mean of the times up to three times the median; longer ones were interrupted.
double uninterrupted_mean(const std::vector<double>& seconds);

/// The statistic that makes one step time of the times of several steps, and of several runs. The median is
/// taken where they differ only by accident. Where kernels compute, the mean is taken: cores that switch
/// between two speeds make two kinds of steps, and the median would be that of one kind or of the other.
enum class StepStatistic { median, mean };

/// @throws std::invalid_argument without samples
double value_of(StepStatistic statistic, const std::vector<double>& samples);

/// A median with a lower and an upper quantile around it.
struct Quantiles {
  double low = 0;
  double median = 0;
  double high = 0;
};

/// The 5 %, 50 % and 95 % quantiles of the draws; nine out of ten draws lie between the outer ones.
Quantiles forecast_interval(const std::vector<double>& draws);

/// Options of the bootstrap. Equal seeds give equal intervals on every machine.
struct Bootstrap {
  std::uint64_t seed = 0;
  int resamples = 1000;
  double confidence = 0.95;
};

/// A statistic of samples with the ends of its confidence interval.
struct Estimate {
  double low = 0;
  double value = 0;
  double high = 0;
};

/// A statistic of the samples and its confidence interval by the percentile bootstrap: the statistic of a
/// repeated measurement would lie in the interval with the given confidence. Source: B. Efron, "Bootstrap
/// Methods: Another Look at the Jackknife", The Annals of Statistics 7(1), 1979.
/// @throws std::invalid_argument without samples or resamples
Estimate estimate_of(StepStatistic statistic, const std::vector<double>& samples, const Bootstrap& bootstrap);

/// Coefficients c that minimise the sum over rows of (rows[i] . c - y[i])^2, by QR decomposition with column
/// pivoting. Among linearly dependent columns, some get the coefficient 0.
/// @param rows  rows[i][j], all of one length; at least as many rows as columns
std::vector<double> least_squares(const std::vector<std::vector<double>>& rows, const std::vector<double>& y);

/// First-order (main-effect) index Var(E[y|x]) / Var(y) of every input, each in [0, 1], from given draws: the
/// share of the result's variance that would vanish on average if this input were known. What inputs do only
/// together belongs to none of them, so the indices sum to at most 1.
///
/// Estimator: least squares of y on the shifted Legendre polynomials of all inputs together (degree N / 6 an
/// input, at most 10, for N draws an input); an index is the sum of an input's squared coefficients, less
/// what the residual gives them by chance, over the sum of all of these and the residual's variance. Fitting
/// the inputs together keeps the effect of one out of the error of another; binning each input alone found
/// 0.07 for 0.2 at 64 draws. A jump or an oscillation finer than the degree follows is underestimated.
///
/// Sources: I. M. Sobol', "Sensitivity Estimates for Nonlinear Mathematical Models", Mathematical Modelling
/// and Computational Experiments 1(4), 1993 (the index); B. Sudret, "Global sensitivity analysis using
/// polynomial chaos expansions", Reliability Engineering & System Safety 93(7), 2008 (from coefficients).
///
/// @param inputs  inputs[draw][input], as drawn, uniform in [0, 1) whatever law is laid over it
/// @param y       the result of each draw
/// @return one index an input; all 0 where y does not vary
/// @throws std::invalid_argument if the lengths differ or there are fewer than 3 draws an input
std::vector<double> first_order_indices(const std::vector<std::vector<double>>& inputs,
                                        const std::vector<double>& y);

/// The share of a result's variance that one assumption explains.
struct Sensitivity {
  std::string name;
  double share = 0;  ///< first-order index, in [0, 1]
};

/// The index of each named input, largest first; inputs of equal index keep their order.
std::vector<Sensitivity> sensitivities(const std::vector<std::string>& names,
                                       const std::vector<std::vector<double>>& inputs,
                                       const std::vector<double>& y);

}  // namespace stepcast
