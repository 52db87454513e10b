#include "forecast/measured/next_measurement.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.hpp"
#include "core/text.hpp"
#include "forecast/discrepancy.hpp"
#include "forecast/draws/weighted_draws.hpp"
#include "forecast/fit_calibration.hpp"
#include "forecast/posterior.hpp"

namespace stepcast {
namespace {

constexpr const char* kStep = "step_seconds";
constexpr std::size_t kMostTried = 16;

/// The logarithms of the step time at a point: [draw], and the samples of the model's error.
struct LogSteps {
  std::vector<double> simulated, shift, errors;
};

LogSteps log_steps(const Simulations& all, std::size_t point) {
  LogSteps steps;
  for (std::size_t draw = 0; draw < all.rows.size(); ++draw) {
    steps.simulated.push_back(std::log(*all.rows[draw][point].number(kStep)));
    steps.shift.push_back(all.shifts.empty() ? 0 : all.shifts[draw][point]);
  }
  steps.errors = all.log_errors.empty() ? std::vector<double>(kDiscrepancySamples) : all.log_errors[point];
  return steps;
}

double weighted_variance(const std::vector<double>& values, const std::vector<double>& weights) {
  double middle = 0, square = 0;
  for (std::size_t i = 0; i < values.size(); ++i) middle += weights[i] * values[i];
  for (std::size_t i = 0; i < values.size(); ++i) square += weights[i] * std::pow(values[i] - middle, 2);
  return square;
}

double plain_variance(const std::vector<double>& values) {
  return weighted_variance(values, std::vector<double>(values.size(), 1.0 / values.size()));
}

std::vector<double> sum(std::vector<double> a, const std::vector<double>& b, double factor = 1) {
  for (std::size_t i = 0; i < a.size(); ++i) a[i] += factor * b[i];
  return a;
}

/// Draws and samples of the error are independent, so their variances add up.
double present_variance(const LogSteps& target) {
  return plain_variance(sum(target.simulated, target.shift)) + plain_variance(target.errors);
}

/// Of the ratio of target and measured point, which is left when the measured one is fed in.
double variance_of_ratio(const LogSteps& target, const LogSteps& measured) {
  return plain_variance(sum(target.simulated, measured.simulated, -1)) +
         plain_variance(sum(target.errors, measured.errors, -1)) + std::pow(kRepeatability, 2);
}

/// Where a single figure is fed in, the present interval lacks what its layout and the target's differ by.
double variance_of_own_layout(const Scenario& scenario, std::size_t target, const Simulations& all,
                              Library& library) {
  if (all.log_errors.empty() || measures_steps(scenario)) return 0;
  double least = 0;
  bool any = false;
  for (const Measurement& one : scenario.calibrations) {
    const auto point = matching_point(scenario, one.point);
    if (!point || !one.over.empty()) continue;
    const double own = layout_variance(scenario, *point, target, library);
    least = any ? std::min(least, own) : own;
    any = true;
  }
  return least;
}

Scenario with_measurement(Scenario scenario, std::size_t point, double seconds) {
  Measurement one;
  one.point = scenario.points[point].values;
  one.column = kStep;
  one.value = seconds;
  scenario.measurements.push_back(std::move(one));
  return scenario;
}

/// The rows of these points, of all measured ones and of those that are fed in.
Simulations rows_of(const Scenario& scenario, const std::vector<std::size_t>& points,
                    const Simulations& all) {
  std::vector<std::size_t> kept = points;
  for (const auto& others : {measured_points(scenario), fed_in_points(scenario)})
    kept.insert(kept.end(), others.begin(), others.end());
  Simulations part;
  part.inputs = all.inputs;
  part.rows.assign(all.rows.size(), std::vector<Row>(scenario.points.size()));
  for (std::size_t draw = 0; draw < all.rows.size(); ++draw) {
    for (const std::size_t point : kept) part.rows[draw][point] = all.rows[draw][point];
  }
  return part;
}

/// The mean variance at the target after a measurement whose value is that of each draw and of several
/// samples of the error.
double expected_variance(const Scenario& scenario, std::size_t point, std::size_t target,
                         const Simulations& all, Library& library) {
  constexpr std::size_t kSamples = 8;
  const Scenario measured = with_measurement(scenario, point, 1);
  Simulations part = rows_of(measured, {target, point}, all);
  const bool has_term = !all.log_errors.empty();
  part.misfit = all.misfit ? *all.misfit : misfit_of(scenario, part.rows.front());
  const ErrorModel before = error_model(scenario, part.rows.front(), library, has_term, *part.misfit),
                   after = error_model(measured, part.rows.front(), library, has_term, *part.misfit);
  std::vector<double> gain_of_unit(part.rows.size());
  part.log_errors.assign(scenario.points.size(), std::vector<double>(kDiscrepancySamples));
  part.shifts.assign(part.rows.size(), std::vector<double>(scenario.points.size()));
  if (has_term) {
    Simulations longer = part;
    learn_errors(measured, {target}, library, part);
    learn_errors(with_measurement(scenario, point, std::exp(1.0)), {target}, library, longer);
    for (std::size_t draw = 0; draw < part.rows.size(); ++draw)
      gain_of_unit[draw] = longer.shifts[draw][target] - part.shifts[draw][target];
  }
  const LogSteps there = log_steps(part, target), here = log_steps(all, point);
  std::vector<double> old_logs;
  std::vector<std::vector<double>> missed;
  for (const auto& rows : part.rows) {
    old_logs.push_back(scenario.measurements.empty() ? 0 : log_likelihood(before, residuals(scenario, rows)));
    missed.push_back(residuals(measured, rows));
  }
  double variances = 0;
  for (std::size_t draw = 0; draw < part.rows.size(); ++draw) {
    for (std::size_t k = 0; k < kSamples; ++k) {
      const double value = here.simulated[draw] + here.shift[draw] +
                           here.errors[(2 * k + 1) * here.errors.size() / (2 * kSamples)];
      std::vector<double> logs;
      for (std::size_t i = 0; i < missed.size(); ++i) {
        auto residual = missed[i];
        residual.back() += value;
        logs.push_back(log_likelihood(after, residual) - old_logs[i]);
      }
      variances +=
          weighted_variance(sum(sum(there.simulated, there.shift), gain_of_unit, value), weights_of(logs));
    }
  }
  return variances / (part.rows.size() * kSamples) + plain_variance(there.errors);
}

bool is_known(const Scenario& scenario, std::size_t point) {
  const auto here = [&](const auto& one) { return sets_all(scenario.points[point], one.point); };
  return std::ranges::any_of(scenario.measurements, here) || std::ranges::any_of(scenario.calibrations, here);
}

}  // namespace

MeasuringBudget parse_measuring_budget(const std::string& text) {
  if (text.empty()) return {};
  const auto comma = text.find(',');
  const auto devices = parse_number(text.substr(0, comma));
  MeasuringBudget budget{devices.value_or(0)};
  const bool limited = comma != std::string::npos;
  const auto time = limited ? parse_quantity(text.substr(comma + 1), Dimension::time) : 0.0;
  if (budget.devices < 1 || !time || (limited && *time <= 0))
    throw InputError(
        fmt::format("--decide: expected a number of devices, with a time behind a comma if it is limited, "
                    "such as 8 or \"8,30 min\"; got \"{}\"",
                    printable(text)));
  budget.time = {*time};
  return budget;
}

std::vector<NextMeasurement> next_measurements(const Scenario& scenario,
                                               const std::vector<std::size_t>& points, std::size_t target,
                                               const MeasuringBudget& budget, const Simulations& all,
                                               Library& library) {
  std::vector<NextMeasurement> next;
  for (const std::size_t point : points) {
    const Row& row = all.rows.front()[point];
    const double seconds = kMeasuredSteps * row.number(kStep).value_or(0);
    const bool affordable = row.number("devices").value_or(0) <= budget.devices &&
                            row.text("fits") != "false" &&
                            (budget.time.value == 0 || seconds <= budget.time.value);
    if (affordable && point != target && !is_known(scenario, point)) next.push_back({point});
  }
  std::ranges::stable_sort(next, [&](const auto& a, const auto& b) {
    return all.rows.front()[a.point].number("devices") > all.rows.front()[b.point].number("devices");
  });
  if (next.size() > kMostTried) next.resize(kMostTried);
  const LogSteps there = log_steps(all, target);
  const double present = present_variance(there) + variance_of_own_layout(scenario, target, all, library);
  const bool has_term = !all.log_errors.empty();
  const bool first = scenario.calibrations.empty() && scenario.measurements.empty();
  for (NextMeasurement& one : next) {
    const bool is_fed_in = first && !is_mostly_communication(all.rows.front()[one.point]);
    const double layouts = has_term ? layout_variance(scenario, one.point, target, library) : 0;
    const double after = is_fed_in ? variance_of_ratio(there, log_steps(all, one.point)) + layouts
                                   : expected_variance(scenario, one.point, target, all, library);
    one.left = present > 0 ? std::sqrt(after / present) : 1;
  }
  std::ranges::stable_sort(next, [](const auto& a, const auto& b) { return a.left < b.left; });
  return next;
}

std::vector<std::string> next_measurement_lines(const Scenario& scenario, std::size_t target,
                                                const std::vector<NextMeasurement>& next,
                                                const Simulations& all) {
  constexpr std::size_t kShown = 3;
  constexpr double kLeastNarrowing = 0.95;
  if (next.empty())
    return {
        "Measure next: no point of the sweep that is not measured yet fits the budget; add some to the "
        "sweep."};
  const auto interval = forecast_interval(predictive_values(all, target, kStep));
  const double width = (interval.high - interval.low) / interval.median;
  const std::string& at = scenario.points[target].name;
  if (next.front().left > kLeastNarrowing)
    return {
        fmt::format("Measure next: none of {} points within the budget narrows the interval of the step time "
                    "at {} ({:.1f} % wide) by a twentieth.",
                    next.size(), at, 100 * width)};
  std::vector<std::string> lines{fmt::format(
      "Measure next, for the step time at {}, whose interval is {:.1f} % of it wide:", at, 100 * width)};
  for (std::size_t i = 0; i < std::min(next.size(), kShown); ++i)
    lines.push_back(fmt::format("  {}: {:.1f} % are expected to be left", scenario.points[next[i].point].name,
                                100 * width * next[i].left));
  return lines;
}

}  // namespace stepcast
