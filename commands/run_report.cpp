#include "commands/run_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "commands/calibrate_draw.hpp"
#include "report/results_table.hpp"
#include "scenarios/sweep.hpp"

namespace stepcast {
namespace {

void print_assumptions(const Outputs& outputs, const Simulations& all, const Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.calibrations.size(); ++i) {
    const Feed& feed = scenario.calibrations[i];
    const double reached = all.reached.front()[i];
    const std::string point =
        point_name(feed.point) + (feed.over.empty() ? "" : " / " + point_name(feed.over));
    fmt::print("calibrated: {} = {:.4g}{} {} {} = {:.4g} at {}{}\n", feed.range.key,
               all.calibrated.front()[i], feed.range.unit, is_met(feed, reached) ? "meets" : "only reaches",
               feed.column, reached, point,
               is_met(feed, reached) ? "" : fmt::format(", not {:.4g}: its range ends there", feed.value));
    const auto missed = std::count_if(all.reached.begin(), all.reached.end(),
                                      [&](const auto& draw) { return !is_met(feed, draw[i]); });
    if (missed > 0 && all.reached.size() > 1)
      fmt::print("  not met in {} of {} draws of the assumptions\n", missed, all.reached.size());
  }
  if (outputs.sensitivity.empty()) return;
  fmt::print("{} at {}: share of the variance that each assumption explains\n",
             outputs.sensitive_column == "step_seconds" ? "step time" : outputs.sensitive_column,
             outputs.sensitive_point);
  for (const Sensitivity& one : outputs.sensitivity)
    fmt::print("  {:5.1f} %  {}\n", 100 * one.share, one.name);
}

/// Points that do not fit, and why.
void print_misfits(const Results& results) {
  for (const Row& row : results.rows) {
    const std::string why = row.text("why_not");
    if (!why.empty()) fmt::print("does not fit: {}: {}\n", row.text("point"), why);
  }
}

void print_flags(const Experiment& experiment) {
  for (const std::string& flag : experiment.plan.flags) fmt::print("{}\n", flag);
}

std::vector<std::string> leading_columns(const Scenario& scenario) {
  std::vector<std::string> leading;
  for (const std::string& key : scenario.sweep_keys) {
    if (key != "workers") leading.push_back(key);
  }
  return leading;
}

}  // namespace

void print_outputs(const Outputs& outputs, const Simulations& all, const Scenario& scenario,
                   const Experiment& largest) {
  fmt::print("{}: {} on {}\n{}", scenario.name, largest.model.name, largest.platform.name,
             to_string(results_table(outputs.results, leading_columns(scenario))));
  const Table own = own_columns_table(outputs.results, leading_columns(scenario));
  if (!own.columns.empty()) fmt::print("\n{}", to_string(own));
  print_misfits(outputs.results);
  print_assumptions(outputs, all, scenario);
  print_flags(largest);
}

}  // namespace stepcast
