#include "commands/calibrate_draw.hpp"

#include <cmath>
#include <utility>

#include "commands/forecast.hpp"
#include "commands/pool.hpp"
#include "core/error.hpp"
#include "report/json_lines.hpp"

namespace stepcast {
namespace {

constexpr double kClose = 1e-5;  // of the figure
constexpr double kMet = 1e-3;    // of the figure: as a fitted figure without tolerance is judged
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

/// Where an increasing or decreasing function is zero between two ends, and what it is there (regula falsi,
/// Illinois variant); an end where it is not.
template <class Function>
std::pair<double, double> zero_between(double low, double high, double scale, const Function& f) {
  double at_low = f(low), at_high = f(high);
  if (at_low * at_high > 0)
    return std::abs(at_low) < std::abs(at_high) ? std::pair{low, at_low} : std::pair{high, at_high};
  double x = low, at_x = at_low;
  for (int step = 0; step < kMostSteps && std::abs(at_x) > kClose * scale; ++step) {
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
  for (const Feed& feed : scenario.calibrations) {
    const auto difference = [&](double x) {
      std::vector<double> tried = found.values;
      tried.push_back(x);
      const auto at = [&](const std::vector<Assignment>& point) {
        return simulated(scenario, feed, values_of(scenario, point, inputs, tried), library);
      };
      return (feed.over.empty() ? at(feed.point) : at(feed.point) / at(feed.over)) - feed.value;
    };
    const auto [value, off] = zero_between(feed.range.low, feed.range.high, feed.value, difference);
    found.values.push_back(value);
    found.reached.push_back(feed.value + off);
  }
  return found;
}

bool is_met(const Feed& feed, double reached) {
  return std::abs(reached - feed.value) <= kMet * std::abs(feed.value);
}

}  // namespace stepcast
