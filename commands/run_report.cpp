#include "commands/run_report.hpp"

#include <fmt/format.h>

#include "report/results_table.hpp"
#include "scenarios/sweep.hpp"

namespace stepcast {
namespace {

void print_assumptions(const Outputs& outputs, const Simulations& all, const Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.calibrations.size(); ++i) {
    const Feed& feed = scenario.calibrations[i];
    fmt::print("calibrated: {} = {:.4g}{} meets {} = {:.4g} at {}{}\n", feed.range.key,
               all.calibrated.front()[i], feed.range.unit, feed.column, feed.value, point_name(feed.point),
               feed.over.empty() ? "" : " / " + point_name(feed.over));
  }
  if (outputs.sensitivity.empty()) return;
  fmt::print("step time at {}: share of the variance that each assumption explains\n",
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
  for (const std::string& flag : experiment.plan.flags) fmt::print("note on the trace: {}\n", flag);
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
