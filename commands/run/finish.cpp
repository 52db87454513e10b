#include "commands/run/finish.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "commands/collectives/measured_network.hpp"
#include "commands/run/best_alternatives.hpp"
#include "core/error.hpp"
#include "core/os/process.hpp"
#include "forecast/advice/advice.hpp"
#include "forecast/default_ranges.hpp"
#include "forecast/discrepancy.hpp"
#include "forecast/measured/measured_lines.hpp"
#include "forecast/measured/measured_memory.hpp"
#include "forecast/posterior.hpp"
#include "report/results/results.hpp"
#include "scenarios/experiment/experiment.hpp"

namespace stepcast {
namespace {

Outputs outputs_of(const Scenario& scenario, const std::vector<std::size_t>& points, const Simulations& all,
                   double least_gain) {
  const auto simulated = simulated_points(points, all);
  Outputs outputs;
  outputs.results = summarized_results(scenario, points, all);
  add_choices(scenario, points, all, outputs.results);
  outputs.published = compared_with_published(scenario, simulated, all);
  const ReportedFigure reported = reported_figure(scenario, simulated, outputs.published);
  outputs.sensitive_point = scenario.points[reported.point].name;
  if (reported.over) outputs.sensitive_point += " / " + scenario.points[*reported.over].name;
  outputs.sensitive_column = reported.column;
  outputs.sensitivity = variance_shares(scenario, all, reported);
  outputs.unmoving = unmoving_assumptions(scenario, all, simulated);
  const auto workers = worthy_workers(scenario, simulated, all, least_gain);
  if (workers && workers->low < workers->largest) outputs.worthy = to_string(*workers, least_gain);
  return outputs;
}

void add_advice(const FinishedRun& run, Library& library, const Simulations& all, Outputs& outputs) {
  const Scenario& scenario = run.prepared.scenario;
  const auto found =
      advised(scenario, simulated_points(all_points(scenario), all), all, library, run.processes);
  if (!found) return;
  outputs.change = advice_sentence(scenario, *found);
  outputs.advice = advice_lines(scenario, *found);
  outputs.advised = advice_results(scenario, *found);
}

/// For the fitting point with most workers.
std::vector<std::string> measure_next(const FinishedRun& run, Library& library, const Simulations& all) {
  const Scenario& scenario = run.prepared.scenario;
  const auto points = simulated_points(all_points(scenario), all);
  const auto target = largest_point(points, all);
  if (!target || all.rows.size() < 2) return {"Measure next: nothing narrows the interval of one draw."};
  const auto next = next_measurements(scenario, points, *target, run.budget, all, library);
  return next_measurement_lines(scenario, *target, next, all);
}

/// The measurements beside their forecasts, and what to measure next.
std::vector<std::string> lines_of_measurements(const FinishedRun& run, Library& library,
                                               const Simulations& all) {
  const Scenario& scenario = run.prepared.scenario;
  std::vector<std::string> lines = measured_lines(scenario, all);
  if (!run.network.empty()) {
    const auto values =
        values_of(scenario, scenario.points.front().values, all.inputs.front(), all.calibrated.front());
    const Experiment first = build_experiment(scenario.document, values, library);
    const auto network = measured_network_lines(run.network, first.platform);
    lines.insert(lines.begin(), network.begin(), network.end());
  }
  if (run.budget.devices > 0) {
    const auto next = measure_next(run, library, all);
    lines.insert(lines.end(), next.begin(), next.end());
  }
  return lines;
}

std::vector<std::string> fidelities_of(const Results& results) {
  std::set<std::string> fidelities;
  for (const Row& row : results.rows) {
    if (row.text("failed").empty()) fidelities.insert(row.text("fidelity"));
  }
  return {fidelities.begin(), fidelities.end()};
}

}  // namespace

std::vector<std::size_t> all_points(const Scenario& scenario) {
  std::vector<std::size_t> points(scenario.points.size());
  std::iota(points.begin(), points.end(), std::size_t{0});
  return points;
}

PreparedRun prepared_run(const Scenario& given, const Experiment& largest, int draws, Library& library) {
  const bool has_intervals = draws != 1;
  PreparedRun run{has_intervals ? with_default_ranges(given, largest, library) : given};
  run.has_discrepancy = has_intervals && run.scenario.uncertainty.discrepancy;
  if (run.has_discrepancy) shipped_discrepancy(library);  // names the file in the manifest
  run.draws = draw_count(run.scenario, draws);
  return run;
}

FinishedOutputs finish_run(FinishedRun run, Library& library, Simulations all) {
  const Scenario& scenario = run.prepared.scenario;
  const auto points = all_points(scenario);
  add_scaling(scenario, points, all);
  if (run.prepared.has_discrepancy) {
    const auto simulated = simulated_points(points, all);
    measures_steps(scenario) ? learn_errors(scenario, simulated, library, all)
                             : add_discrepancy(scenario, simulated, library, all);
  }
  learn_memory(scenario, simulated_points(points, all), library, all);
  Outputs outputs = outputs_of(scenario, points, all, run.least_gain);
  if (run.advice) add_advice(run, library, all, outputs);
  outputs.measured = lines_of_measurements(run, library, all);
  run.manifest.fidelities = fidelities_of(outputs.results);
  DrawnPlots drawn = write_outputs(run.folder, outputs, run.manifest, run.plots);
  drawn.missing.attempt(run.folder, "report.html", [&](const std::filesystem::path&) {
    write_page(run.folder, outputs, run.manifest, scenario, run.settings);
  });
  SignalGuard::stop_if_interrupted();
  print_outputs(outputs, all, scenario, run.checked);
  add_json_rows("results", outputs.results);
  add_json_rows("advice", outputs.advised);
  add_json_rows("published", to_results(scenario.name, outputs.published));
  add_json_rows("sensitivity", sensitivity_results(scenario.name, outputs.sensitive_point,
                                                   outputs.sensitive_column, outputs.sensitivity));
  if (outputs.published.size() < scenario.published.size())
    fmt::print("not compared: {} published figures, because their points failed\n",
               scenario.published.size() - outputs.published.size());
  for (const std::string& complaint : drawn.complaints) fmt::print("{}\n", complaint);
  return {outputs.published, drawn.missing};
}

void print_published(const std::vector<PublishedRow>& published) {
  if (published.empty()) return;
  fmt::print("\nforecasts compared with published figures\n{}{}\n",
             to_string(published_table(published), terminal_width()), to_string(summarized(published)));
}

void report_failed_points(std::size_t failed) {
  if (failed == 0) return;
  throw PointsFailed(fmt::format("{} point{} failed; the results of all others were written", failed,
                                 failed == 1 ? "" : "s"));
}

}  // namespace stepcast
