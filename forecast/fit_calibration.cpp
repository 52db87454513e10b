#include "forecast/fit_calibration.hpp"

#include <cmath>
#include <utility>

#include "core/error.hpp"
#include "forecast/process_pool.hpp"
#include "forecast/simulate_point.hpp"
#include "report/results/results_text.hpp"

namespace stepcast {
namespace {

constexpr double kSearchError = 1e-5;  // relative to the figure: the search stops below it
constexpr double kMetError =
    1e-3;  // relative to the figure: the tolerance of fitted figures without their own
constexpr int kMaxSteps = 40;

/// The value of a column at a point, simulated in a child process.
double simulated(const Scenario& scenario, const CalibrationTarget& feed,
                 const std::vector<Assignment>& values, Library& library) {
  double result = 0;
  run_tasks({[&] {
              const Row row =
                  simulate_point(build_experiment(scenario.document, values, library), Doubled::none);
              return to_json_line({}, row);
            }},
            1, [&](std::size_t, const std::string& text) {
              const Results results = read_json_lines(text + "\n", "simulation");
              result = results.rows.at(0).number(feed.column).value_or(NAN);
            });
  if (std::isnan(result)) {
    throw InputError(to_string(feed.range.place) + ": calibrate: expected a column of the results, got \"" +
                     feed.column + "\"");
  }
  return result;
}

/// The root of a monotone function between two ends and the function's value there, by the Illinois variant
/// of regula falsi. If there is no root between the ends, the end where the function is closer to zero.
template <class Function>
std::pair<double, double> root_between(double low, double high, double scale, const Function& f) {
  double at_low = f(low), at_high = f(high);
  if (at_low * at_high > 0)
    return std::abs(at_low) < std::abs(at_high) ? std::pair{low, at_low} : std::pair{high, at_high};
  double x = low, at_x = at_low;
  for (int step = 0; step < kMaxSteps && std::abs(at_x) > kSearchError * scale; ++step) {
    x = (low * at_high - high * at_low) / (at_high - at_low);
    at_x = f(x);
    if (at_x * at_high > 0) {
      high = x;
      at_high = at_x;
      at_low /= 2;
    } else {
      low = x;
      at_low = at_x;
      at_high /= 2;
    }
  }
  return {x, at_x};
}

}  // namespace

Calibrated calibrated_draw(const Scenario& scenario, const std::vector<double>& inputs, Library& library) {
  Calibrated found;
  for (const CalibrationTarget& feed : scenario.calibrations) {
    const auto difference = [&](double x) {
      std::vector<double> tried = found.values;
      tried.push_back(x);
      const auto at = [&](const std::vector<Assignment>& point) {
        return simulated(scenario, feed, values_of(scenario, point, inputs, tried), library);
      };
      return (feed.over.empty() ? at(feed.point) : at(feed.point) / at(feed.over)) - feed.value;
    };
    const auto [value, error] = root_between(feed.range.low, feed.range.high, feed.value, difference);
    found.values.push_back(value);
    found.reached.push_back(feed.value + error);
  }
  return found;
}

bool is_reached(const CalibrationTarget& feed, double reached) {
  return std::abs(reached - feed.value) <= kMetError * std::abs(feed.value);
}

}  // namespace stepcast
