#pragma once

#include <functional>
#include <set>
#include <vector>

#include "forecast/discrepancy.hpp"
#include "forecast/simulations.hpp"

namespace stepcast {

/// What measurements say. The error of the model at a point, log(measured step / forecast step), is
///
///     term + level + (layout + detail) - (those that are fed in) + own
///
/// with the samples of grown_errors (forecast/discrepancy.hpp), a level that all points have in common that
/// are on other devices than the point that is fed in, errors that points of one layout and those of equal
/// details have in common (forecast/draws/alternatives.hpp), and one of points that differ in details
/// alone, which those of the fed-in point have not; all but the term are normal. A point that is fed in has
/// none. Where no measurement has a level, there is none, and the term is that without measurements. A
/// measurement is the error of its point and the repeatability of runs. The constants were fitted on open
/// published figures (docs/notes/2026-11-measured-points.md). `own`, `doubling` and `walk` grow with the
/// misfit.
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

/// Variance of the difference of what two points' layouts and details have in error; 0 for equal ones.
double layout_variance(const Scenario& scenario, std::size_t a, std::size_t b, Library& library);

/// Sample `k` of kDiscrepancySamples of a standard normal variable; other streams have another order.
double normal_sample(unsigned k, std::size_t stream);

/// Standard deviation of a measurement without a spread, relative: what equal runs differ by.
constexpr double kRepeatability = 0.005;

/// The root mean square of the residuals of measured steps that have a level beside a fed-in point; 0.03, the
/// median of the open figures, if there are none.
/// @param rows  of one draw; those of measured points are needed
double misfit_of(const Scenario& scenario, const std::vector<Row>& rows);

/// The error model of a scenario's measurements; without the discrepancy term, of their spreads alone.
/// @param rows    of one draw; those of measured points are needed
/// @param misfit  of the draw in the middle of the assumptions
ErrorModel error_model(const Scenario& scenario, const std::vector<Row>& rows, Library& library,
                       bool has_discrepancy, double misfit);

/// log(measured step / forecast step) of each measurement in one draw; for a column that does not follow
/// from the time of a step, log(measured / forecast), to both of which a hundredth of the step is added if
/// they are parts of it. @throws InputError for an unknown column
std::vector<double> residuals(const Scenario& scenario, const std::vector<Row>& rows);

/// The number above 0 in the column of a measurement, among the results of its point. @throws InputError
double forecast_of(const Scenario& scenario, const Measurement& measurement, const Row& results);

/// The logarithm of the likelihood of the residuals, up to a constant.
double log_likelihood(const ErrorModel& model, const std::vector<double>& residuals);

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
