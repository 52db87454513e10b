#pragma once

#include <functional>
#include <set>
#include <vector>

#include "forecast/discrepancy.hpp"
#include "forecast/simulations.hpp"

namespace stepcast {

/// What measurements say. The error of the model at a point, log(measured step / forecast step), is
///
///     term + level + alternative + own
///
/// with the samples of grown_errors (forecast/discrepancy.hpp), a level that all points have in common, an
/// error that points of one layout have in common (of equal values of the keys that differ among points with
/// equally many workers), and an error of the point's own; all but the term are normal. A point that is fed
/// in has only the term, which is 0 there. A measurement is the error of its point and the repeatability of
/// runs. The constants were fitted on open published figures (docs/notes/2026-11-measured-points.md).
struct ErrorModel {
  /// [measurement][sample]: the error at its point with the repeatability.
  std::vector<std::vector<double>> samples;
  std::vector<double> mean;                 ///< [measurement], of the term
  std::vector<std::vector<double>> factor;  ///< Cholesky factor of the covariance of the measurements
};

/// The points of the measurements, and further points of the sweep to which figures are calibrated.
std::set<std::size_t> measured_points(const Scenario& scenario);
std::set<std::size_t> fed_in_points(const Scenario& scenario);

/// True if a measurement follows from the time of a step, so that it says something about the model's error.
bool measures_steps(const Scenario& scenario);

/// By point: a number that points of one layout have in common, with equal values of the keys that differ
/// among points with equally many workers.
std::vector<std::size_t> alternatives_of(const Scenario& scenario);

/// Sample `k` of kDiscrepancySamples of a standard normal variable; other streams have another order.
double normal_sample(unsigned k, std::size_t stream);

/// Standard deviation of a measurement without a spread, relative: what equal runs differ by.
constexpr double kRepeatability = 0.005;

/// The error model of a scenario's measurements; without the discrepancy term, of their spreads alone.
/// @param rows  of one draw; those of measured points are needed
ErrorModel error_model(const Scenario& scenario, const std::vector<Row>& rows, Library& library,
                       bool has_discrepancy);

/// log(measured step / forecast step) of each measurement in one draw; for a column that does not follow
/// from the time of a step, log(measured / forecast), to both of which a hundredth of the step is added if
/// they are parts of it. @throws InputError for an unknown column
std::vector<double> residuals(const Scenario& scenario, const std::vector<Row>& rows);

/// The number above 0 in the column of a measurement, among the results of its point. @throws InputError
double forecast_of(const Scenario& scenario, const Measurement& measurement, const Row& results);

/// The logarithm of the likelihood of the residuals, up to a constant.
double log_likelihood(const ErrorModel& model, const std::vector<double>& residuals);

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

/// What learned_draws needs of the forecast that it is a part of.
struct DrawFunctions {
  std::function<void()> simulate;             ///< simulates the measured points in all draws that are new
  std::function<double(std::size_t)> others;  ///< log-likelihood of other measurements in a draw
};

/// The draws that the measurements leave: first their mean, then each as often as its weight says. If fewer
/// than half of the first draws count, those of a second round are taken. Adds draws to Simulations::inputs.
/// @param cubes  points of the unit cube for a second round
std::vector<std::size_t> learned_draws(const Scenario& scenario, const ErrorModel& model,
                                       const std::vector<std::vector<double>>& cubes, Simulations& all,
                                       const DrawFunctions& of_draws);

/// Sets Simulations::log_errors to samples of the posterior, and sets `shifts`. Each sample is moved by
/// the gain times what it misses the measurements by (Matheron's rule), so ratios of points stay consistent.
/// Source: A. Journel, C. Huijbregts, Mining Geostatistics (1978), conditional simulation.
void learn_errors(const Scenario& scenario, const std::vector<std::size_t>& points, Library& library,
                  Simulations& all);

}  // namespace stepcast
