#pragma once

#include <string>
#include <vector>

#include "core/typed_numbers.hpp"
#include "forecast/simulations.hpp"
#include "report/statistics/statistics.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// What a user can spend on a measurement.
struct MeasuringBudget {
  double devices = 0;  ///< 0: nothing is asked
  Seconds time{};      ///< for kMeasuredSteps steps; 0: no limit
};
constexpr double kMeasuredSteps = 100;

/// "8" or "8,30 min". @throws InputError
MeasuringBudget parse_measuring_budget(const std::string& text);

/// What a measurement of a point would do to the 90 % interval of another one.
struct NextMeasurement {
  std::size_t point = 0;
  double left = 1;  ///< expected width of the interval afterwards, as a share of the present one
};

/// The points within the budget that are not measured yet, and what the step time measured there would leave
/// of the interval of the step time at `target`, the narrowest first: preposterior analysis with the draws at
/// hand, and no simulation. The first measurement of all is fed in, so the ratio of both points remains, with
/// the errors of both layouts, which the discrepancy term of one point alone contains. For later ones the
/// value is taken from the present forecast, sample by sample; each weighs the draws and moves the error of
/// the model (forecast/posterior.hpp); the mean of the variances counts. That steps are not shorter than
/// their computation is left out. Source: H. Raiffa, R. Schlaifer, Applied Statistical Decision Theory
/// (1961), chapter 5.
/// @param points  those that have results
/// @param all     with Simulations::log_errors and `shifts` as the forecast has them
std::vector<NextMeasurement> next_measurements(const Scenario& scenario,
                                               const std::vector<std::size_t>& points, std::size_t target,
                                               const MeasuringBudget& budget, const Simulations& all,
                                               Library& library);

/// What the run prints: at most three points with the interval that they would leave.
std::vector<std::string> next_measurement_lines(const Scenario& scenario, std::size_t target,
                                                const std::vector<NextMeasurement>& next,
                                                const Simulations& all);

}  // namespace stepcast
