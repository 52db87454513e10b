#include "commands/calibrate_draw.hpp"

#include <cmath>

#include "commands/forecast.hpp"
#include "commands/pool.hpp"
#include "core/error.hpp"
#include "report/json_lines.hpp"

namespace stepcast {
namespace {

constexpr double kClose = 1e-5;  // of the figure
constexpr int kMostSteps = 40;

/// Column of a point, simulated in a child process.
double simulated(const Scenario& scenario, const Feed& feed, const std::vector<Assignment>& values,
                 Library& library) {
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
    throw InputError(to_string(feed.range.place) + ": calibrate: there is no column " + feed.column);
  }
  return result;
}

/// Zero of an increasing or decreasing function between two ends (regula falsi, Illinois variant).
template <class Function>
double zero_between(double low, double high, double scale, const Function& f) {
  double at_low = f(low), at_high = f(high);
  if (at_low * at_high > 0) return std::abs(at_low) < std::abs(at_high) ? low : high;
  double x = low;
  for (int step = 0; step < kMostSteps; ++step) {
    x = (low * at_high - high * at_low) / (at_high - at_low);
    const double at_x = f(x);
    if (std::abs(at_x) <= kClose * scale) break;
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
  return x;
}

}  // namespace

std::vector<double> calibrated_values(const Scenario& scenario, const std::vector<double>& inputs,
                                      Library& library) {
  std::vector<double> found;
  for (const Feed& feed : scenario.calibrations) {
    const auto difference = [&](double x) {
      std::vector<double> tried = found;
      tried.push_back(x);
      const auto at = [&](const std::vector<Assignment>& point) {
        return simulated(scenario, feed, values_of(scenario, point, inputs, tried), library);
      };
      return (feed.over.empty() ? at(feed.point) : at(feed.point) / at(feed.over)) - feed.value;
    };
    found.push_back(zero_between(feed.range.low, feed.range.high, feed.value, difference));
  }
  return found;
}

}  // namespace stepcast
