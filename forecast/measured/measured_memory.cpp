#include "forecast/measured/measured_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "forecast/draws/alternatives.hpp"
#include "forecast/posterior.hpp"
#include "models/cost/memory.hpp"
#include "report/statistics/cholesky.hpp"
#include "report/statistics/statistics.hpp"
#include "scenarios/experiment/experiment.hpp"

namespace stepcast {
namespace {

constexpr double kLevel = 0.065, kOwn = 0.05;

std::vector<Measurement> of_memory(const Scenario& scenario) {
  std::vector<Measurement> measured;
  for (const Measurement& one : scenario.measurements) {
    if (one.column == kMemoryColumn) measured.push_back(one);
  }
  return measured;
}

/// The prior of log(measured / counted memory) at the points of a scenario.
struct MemoryErrors {
  std::vector<std::size_t> layouts;   ///< by point
  const std::vector<Row>& rows;       ///< by point
  std::vector<std::size_t> measured;  ///< points of the measurements
  std::vector<std::vector<double>> factor;

  MemoryErrors(const Scenario& scenario, const std::vector<Measurement>& measurements,
               const std::vector<Row>& rows_of_points)
      : layouts(alternatives_of(scenario).layouts), rows(rows_of_points) {
    for (const Measurement& one : measurements)
      measured.push_back(matching_point(scenario, one.point).value());
    for (std::size_t i = 0; i < measured.size(); ++i) {
      factor.push_back(covariances(measured[i]));
      factor.back()[i] += std::pow(std::max(measurements[i].spread, kRepeatability), 2);
    }
    factor = cholesky(std::move(factor));
  }

  double covariance(std::size_t a, std::size_t b) const {
    const bool same =
        layouts[a] == layouts[b] && rows[a].number("batch_per_worker") == rows[b].number("batch_per_worker");
    return kLevel * kLevel + (same ? kOwn * kOwn : 0);
  }

  /// Of a point with those of the measurements.
  std::vector<double> covariances(std::size_t point) const {
    std::vector<double> all;
    for (const std::size_t other : measured) all.push_back(covariance(point, other));
    return all;
  }
};

void set_fits(Row& row, const Experiment& experiment, double factor) {
  const double margin = factor - 1;
  const bool fits_now = fits(experiment.plan.memory, experiment.device, margin);
  row.set("fits", fits_now);
  std::erase_if(row.cells, [](const auto& cell) { return cell.first == "why_not"; });
  if (!fits_now)
    row.set("why_not", fmt::format("{}; measured memory says {:.2f} times these",
                                   why_not(experiment.plan.memory, experiment.device, margin), factor));
}

}  // namespace

void learn_memory(const Scenario& scenario, const std::vector<std::size_t>& points, Library& library,
                  Simulations& all) {
  const std::vector<Measurement> measurements = of_memory(scenario);
  if (measurements.empty()) return;
  const MemoryErrors errors(scenario, measurements, all.rows.front());
  std::vector<std::vector<double>> missed;  // [draw][measurement]
  for (const auto& rows : all.rows) {
    auto& own = missed.emplace_back();
    for (std::size_t i = 0; i < measurements.size(); ++i)
      own.push_back(std::log(measurements[i].value / rows[errors.measured[i]].number(kMemoryColumn).value()));
  }
  all.memory_factors.assign(scenario.points.size(), 1);
  for (const std::size_t point : points) {
    if (!all.rows.front()[point].number(kMemoryColumn)) continue;
    const auto gain = solved(errors.factor, errors.covariances(point));
    const Experiment experiment =
        build_experiment(scenario.document, middle_values(scenario, scenario.points[point]), library);
    for (std::size_t draw = 0; draw < missed.size(); ++draw) {
      const double factor = std::exp(std::inner_product(gain.begin(), gain.end(), missed[draw].begin(), 0.0));
      Row& row = all.rows[draw][point];
      row.set(kMemoryColumn, factor * *row.number(kMemoryColumn));
      set_fits(row, experiment, factor);
      if (draw == 0) all.memory_factors[point] = factor;
    }
  }
}

namespace {

/// A question where measured memory is farther off than three standard deviations of both errors; else empty.
std::string doubt_about(double ratio) {
  constexpr double kFar = 1.25;
  if (ratio < kFar && ratio > 1 / kFar) return "";
  return fmt::format(
      "warning: measured memory is {:.2f} times what is counted: does it include the CUDA context or memory "
      "that is reserved in advance, and are batch, precision and recomputation those of the run?",
      ratio);
}

}  // namespace

std::vector<std::string> measured_memory_lines(const Scenario& scenario, const Simulations& all) {
  std::vector<std::string> lines;
  if (all.memory_factors.empty()) return lines;
  std::string doubt;
  for (const Measurement& one : of_memory(scenario)) {
    const std::size_t point = matching_point(scenario, one.point).value();
    if (all.failed.contains(point)) continue;
    const double forecast = median_of(over_draws(all, point, kMemoryColumn));
    const double counted = forecast / all.memory_factors[point];
    lines.push_back(
        fmt::format("measured: memory_bytes = {:.2f} GB at {}; counted {:.2f} GB, forecast with the "
                    "measurements {:.2f} GB",
                    one.value / 1e9, scenario.points[point].name, counted / 1e9, forecast / 1e9));
    if (doubt.empty()) doubt = doubt_about(one.value / counted);
  }
  const auto [least, most] = std::ranges::minmax(all.memory_factors);
  if (!lines.empty())
    lines.push_back(
        fmt::format("measured: memory is forecast at {:.2f} to {:.2f} times what is counted", least, most));
  if (!doubt.empty()) lines.push_back(doubt);
  return lines;
}

}  // namespace stepcast
