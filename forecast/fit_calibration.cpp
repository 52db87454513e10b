#include "forecast/fit_calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "core/error.hpp"
#include "forecast/discrepancy.hpp"
#include "forecast/processes/process_pool.hpp"
#include "forecast/simulate_point.hpp"

namespace stepcast {
namespace {

constexpr double kSearchError = 1e-5;  // relative to the figure: the search stops below it
constexpr double kMetError =
    1e-3;  // relative to the figure: the tolerance of fitted figures without their own
constexpr int kMaxSteps = 40;

/// The results of a point, simulated in a child process.
Row simulated_row(const Scenario& scenario, const std::vector<Assignment>& values, Library& library) {
  Row result;
  run_tasks({[&] {
              const Row row = simulate_point(build_experiment(scenario.document, values, library));
              return to_json_line({}, row);
            }},
            1, [&](std::size_t, const std::string& text) {
              result = read_json_lines(text + "\n", "simulation").rows.at(0);
            });
  return result;
}

double number_of(const Row& row, const Measurement& feed) {
  if (const auto number = row.number(feed.column)) return *number;
  throw InputError(to_string(feed.range.place) + ": calibrate: expected a column of the results, got \"" +
                   feed.column + "\"");
}

/// The root of a monotone function between two ends, by the Illinois variant of regula falsi. If there is no
/// root between the ends, the end where the function is closer to zero.
template <class Function>
double root_between(double low, double high, const Function& f) {
  double at_low = f(low), at_high = f(high);
  if (at_low * at_high > 0) return std::abs(at_low) < std::abs(at_high) ? low : high;
  double x = low, at_x = at_low;
  for (int step = 0; step < kMaxSteps && std::abs(at_x) > kSearchError; ++step) {
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
  return x;
}

/// The key's range in the coordinate of the search: logarithmic where it spans a decade.
struct SearchRange {
  bool logarithmic;
  double low, high;

  explicit SearchRange(const Assumption& range)
      : logarithmic(range.low > 0 && range.high >= 10 * range.low),
        low(logarithmic ? std::log(range.low) : range.low),
        high(logarithmic ? std::log(range.high) : range.high) {}
  double key(double x) const { return logarithmic ? std::exp(x) : x; }
};

/// The root of a function near `x`, where it is `at_x`, by the secant method from a first slope; nothing if
/// it leaves the range or takes many steps.
template <class Function>
std::optional<double> root_near(double x, double at_x, double slope, const SearchRange& range,
                                const Function& f) {
  constexpr double kNearError = 1e-4;  // a fiftieth of what equal runs differ by
  constexpr int kFewSteps = 8;
  for (int step = 0; step < kFewSteps; ++step) {
    if (std::abs(at_x) <= kNearError) return x;
    const double next = x - at_x / slope;
    if (!(next >= range.low && next <= range.high)) return std::nullopt;
    const double at_next = f(next);
    slope = (at_next - at_x) / (next - x);
    x = next;
    at_x = at_next;
  }
  return std::nullopt;
}

/// The distance of a simulated value from the figure, relative: the logarithm of their ratio where both are
/// positive, because a rate is then a straight line over the logarithm of a factor, and the search needs few
/// simulations.
double distance(double value, double figure) {
  return value > 0 && figure > 0 ? std::log(value / figure)
                                 : (value - figure) / std::max(std::abs(figure), 1e-300);
}

}  // namespace

SimulatedRow in_own_process(const Scenario& scenario, Library& library) {
  return [&](const std::vector<Assignment>& values) { return simulated_row(scenario, values, library); };
}

SimulatedRow in_this_process(const Scenario& scenario, Library& library) {
  return [&](const std::vector<Assignment>& values) {
    return simulate_point(build_experiment(scenario.document, values, library));
  };
}

namespace {

/// The slope of the logarithm of a rate or a time against that of a factor on computation.
double slope_of(const Measurement& feed, const Row& results) {
  constexpr double kLeast = 0.1;
  const double share =
      results.number("compute_seconds").value_or(0) / results.number("step_seconds").value_or(1);
  const double slope = std::clamp(share, kLeast, 1.0);
  return relation_to_step(feed.column) == StepRelation::rate ? -slope : slope;
}

}  // namespace

Calibrated calibrated_draw(const Scenario& scenario, const std::vector<double>& inputs,
                           const SimulatedRow& simulation) {
  Calibrated found;
  for (const Measurement& feed : scenario.calibrations) {
    const SearchRange range(feed.range);
    std::map<double, double> reached;  // by x
    Row results;
    const auto difference = [&](double x) {
      std::vector<double> tried = found.values;
      tried.push_back(range.key(x));
      const auto at = [&](const std::vector<Assignment>& point) {
        results = simulation(values_of(scenario, point, inputs, tried));
        return number_of(results, feed);
      };
      reached[x] = feed.over.empty() ? at(feed.point) : at(feed.point) / at(feed.over);
      return distance(reached[x], feed.value);
    };
    std::optional<double> x;
    if (feed.guess > 0) {
      const double guess = std::log(feed.guess);
      const double missed = difference(guess);
      x = root_near(guess, missed, slope_of(feed, results), range, difference);
    }
    if (!x) x = root_between(range.low, range.high, difference);
    found.values.push_back(range.key(*x));
    found.reached.push_back(reached.at(*x));
  }
  return found;
}

Row to_row(const Calibrated& found) {
  Row row;
  for (std::size_t i = 0; i < found.values.size(); ++i) {
    row.set(fmt::format("value_{}", i), found.values[i]);
    row.set(fmt::format("reached_{}", i), found.reached[i]);
  }
  return row;
}

Calibrated calibrated_of(const Row& row, std::size_t count) {
  Calibrated found;
  for (std::size_t i = 0; i < count; ++i) {
    found.values.push_back(row.number(fmt::format("value_{}", i)).value());
    found.reached.push_back(row.number(fmt::format("reached_{}", i)).value_or(NAN));
  }
  return found;
}

bool is_mostly_communication(const Row& results) {
  const auto step = results.number("step_seconds"), exposed = results.number("exposed_communication_seconds");
  return step && exposed && *exposed > *step / 2;
}

Row middle_row(const Scenario& scenario, const Point& point, Library& library) {
  return simulated_row(scenario, middle_values(scenario, point), library);
}

bool is_reached(const Measurement& feed, double reached) {
  return std::abs(reached - feed.value) <= kMetError * std::abs(feed.value);
}

std::string calibration_doubt(const std::string& key, double value) {
  constexpr double kFar = 1.5;
  if (key != "strategy.compute_factor" || !(value > 0) || (value > 1 / kFar && value < kFar)) return "";
  const bool faster = value < 1;
  return fmt::format(
      "warning: {} = {:.2g} is far from 1: the figure needs layers {:.3g} times {} than the model has them. "
      "It is "
      "likely of another network, batch, precision or device{}; a forecast at other sizes carries the error "
      "along",
      key, value, faster ? 1 / value : value, faster ? "faster" : "slower",
      faster ? ", or counts other samples" : ", or its step has work that the scenario does not have");
}

}  // namespace stepcast
