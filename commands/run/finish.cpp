#include "commands/run/finish.hpp"

#include <fmt/format.h>

#include <numeric>
#include <set>

#include "forecast/process_pool.hpp"

namespace stepcast {
namespace {

Outputs outputs_of(const Scenario& scenario, const std::vector<std::size_t>& points, const Simulations& all) {
  const auto simulated = simulated_points(points, all);
  Outputs outputs;
  outputs.results = summarized_results(scenario, points, all);
  outputs.published = compared_with_published(scenario, simulated, all);
  const ReportedFigure reported = reported_figure(scenario, simulated);
  outputs.sensitive_point = scenario.points[reported.point].name;
  outputs.sensitive_column = reported.column;
  outputs.sensitivity = variance_shares(scenario, all, reported.point, reported.column);
  return outputs;
}

std::vector<std::string> forms_of(const Results& results) {
  std::set<std::string> forms;
  for (const Row& row : results.rows) {
    if (row.text("failed").empty()) forms.insert(row.text("communication_form"));
  }
  return {forms.begin(), forms.end()};
}

}  // namespace

std::vector<std::size_t> all_points(const Scenario& scenario) {
  std::vector<std::size_t> points(scenario.points.size());
  std::iota(points.begin(), points.end(), std::size_t{0});
  return points;
}

std::vector<PublishedRow> finish_run(FinishedRun run) {
  const auto points = all_points(run.scenario);
  add_scaling(run.scenario, points, run.all);
  const Outputs outputs = outputs_of(run.scenario, points, run.all);
  run.manifest.forms = forms_of(outputs.results);
  const auto complaints = write_outputs(run.folder, outputs, run.manifest, run.plots);
  write_page(run.folder, outputs, run.manifest, run.scenario, run.settings);
  SignalGuard::stop_if_interrupted();
  print_outputs(outputs, run.all, run.scenario, run.checked.largest);
  if (outputs.published.size() < run.scenario.published.size())
    fmt::print("not compared: {} published figures, because their points failed\n",
               run.scenario.published.size() - outputs.published.size());
  for (const std::string& complaint : complaints) fmt::print("{}\n", complaint);
  fmt::print("written: {}\n", run.folder.string());
  return outputs.published;
}

void print_published(const std::vector<PublishedRow>& published) {
  if (published.empty()) return;
  fmt::print("\nforecasts compared with published figures\n{}{}\n", to_string(published_table(published)),
             to_string(summarized(published)));
}

void report_failed_points(std::size_t failed) {
  if (failed == 0) return;
  throw PointsFailed(fmt::format("{} point{} failed; the results of all others were written", failed,
                                 failed == 1 ? "" : "s"));
}

}  // namespace stepcast
