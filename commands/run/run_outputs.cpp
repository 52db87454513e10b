#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "commands/collectives/measured_network.hpp"
#include "commands/commands.hpp"
#include "commands/fingerprint.hpp"
#include "commands/run/best_alternatives.hpp"
#include "commands/run/finish.hpp"
#include "commands/run/variance_shares.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "core/text.hpp"
#include "forecast/fit_calibration.hpp"
#include "report/page/page.hpp"
#include "report/plots/results_plots.hpp"
#include "report/results/manifest.hpp"
#include "report/results/results.hpp"
#include "report/results/results_table.hpp"
#include "report/text/display_text.hpp"
#include "report/timeline/chrome_trace.hpp"
#include "scenarios/reader/scenario_documents.hpp"
#include "scenarios/reader/sweep.hpp"

namespace stepcast {
namespace {

/// The command line of this process, one entry per argument.
std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

}  // namespace

std::filesystem::path folder_of(const Scenario& scenario, const RunOptions& options) {
  if (!options.output.empty() && options.scenarios.size() > 1)
    return std::filesystem::path(options.output) / scenario.name;
  return results_folder(options.output, scenario.name);
}

Manifest manifest_of(const Scenario& scenario, const Library& library,
                     const std::vector<std::string>& settings) {
  Manifest manifest;
  manifest.version = kVersion;
  manifest.scenario = scenario.name;
  manifest.command = own_command();
  manifest.settings = settings;
  manifest.sweep = scenario.sweep_keys;
  manifest.inputs = input_files(scenario, library);
  manifest.date = date_and_time();
  return manifest;
}

std::filesystem::path journal_of(const std::filesystem::path& folder, const Manifest& manifest,
                                 const RunOptions& options) {
  std::vector<std::string> texts = options.settings;
  texts.push_back(std::to_string(options.draws));
  for (const std::string& runs : options.measured) {
    texts.push_back(runs);
    texts.push_back(read_file(measured_file(runs)));
  }
  auto journal = folder / "simulations.jsonl";
  const auto fingerprint_file = folder / "simulations.sha256";
  const std::string fingerprint = fingerprint_of(manifest.inputs, texts);
  if (!may_resume(fingerprint_file, fingerprint, options.resume)) {
    std::error_code error;
    std::filesystem::remove(journal, error);
    write_fingerprint(fingerprint_file, fingerprint);
  }
  return journal;
}

namespace {

/// Optional files of an earlier run. They are removed, because they do not belong to the new results.
std::vector<std::string> outdated_files() {
  std::vector<std::string> files{"published.csv", "sensitivity.csv", "shard.json", "timeline.json",
                                 "timeline.json.gz"};
  for (const std::string plot : {"scaling", "breakdown", "training", "campaign", "sensitivity"}) {
    for (const char* type : {".gp", ".svg", ".png"}) files.push_back(plot + type);
  }
  return files;
}

}  // namespace

DrawnPlots write_outputs(const std::filesystem::path& folder, const Outputs& outputs,
                         const Manifest& manifest, bool plots) {
  const std::string& scenario = outputs.results.scenario;
  std::error_code error;
  for (const std::string& file : outdated_files()) std::filesystem::remove(folder / file, error);
  remove_chrome_traces(folder / "timeline");
  DrawnPlots drawn;
  const auto write = [&](const char* name, const std::string& text) {
    drawn.missing.attempt(folder, name,
                          [&](const std::filesystem::path& file) { write_atomically(file, text); });
  };
  write("results.csv", to_csv(outputs.results));
  const bool have_results = drawn.missing.names().empty();
  write("results.jsonl", to_json_lines(outputs.results));
  if (!outputs.published.empty()) write("published.csv", to_csv(to_results(scenario, outputs.published)));
  if (!outputs.sensitivity.empty()) {
    write("sensitivity.csv", to_csv(sensitivity_results(scenario, outputs.sensitive_point,
                                                        outputs.sensitive_column, outputs.sensitivity)));
  }
  write("manifest.json", to_json(manifest));
  if (!plots) return drawn;
  if (!have_results) {  // the plots are drawn from it
    drawn.missing.add(folder, {"plots"});
    return drawn;
  }
  DrawnPlots pictures = draw_results(folder);
  drawn.complaints = std::move(pictures.complaints);
  drawn.missing.add(folder, pictures.missing.names());
  return drawn;
}

namespace {

/// Empty where no interval is taken apart.
std::vector<std::string> doubts_of(const Outputs& outputs) {
  const std::string column =
      outputs.sensitive_column == "step_seconds" ? "the step time" : outputs.sensitive_column;
  const std::string doubt = variance_sentence(outputs.sensitivity, column + " at " + outputs.sensitive_point);
  return doubt.empty() ? std::vector<std::string>{} : std::vector{doubt};
}

/// The measurements of points of the sweep.
std::vector<Row> measured_figures(const Scenario& scenario) {
  std::vector<Row> rows;
  for (const auto* all : {&scenario.calibrations, &scenario.measurements}) {
    for (const Measurement& one : *all) {
      const auto point = matching_point(scenario, one.point);
      if (!point || !one.over.empty()) continue;
      Row& row = rows.emplace_back();
      row.set("point", scenario.points[*point].name);
      row.set("column", one.column);
      row.set("relation", "=");
      row.set("published", one.value);
      row.set("measured", true);
    }
  }
  return rows;
}

}  // namespace

void write_page(const std::filesystem::path& folder, const Outputs& outputs, const Manifest& manifest,
                const Scenario& scenario, const std::vector<std::string>& settings) {
  Page page;
  page.results = outputs.results;
  page.manifest = manifest;
  page.description = scenario.description;
  page.settings = settings;
  if (!outputs.published.empty()) page.published = to_results(scenario.name, outputs.published);
  page.sensitivity = sensitivity_results(scenario.name, outputs.sensitive_point, outputs.sensitive_column,
                                         outputs.sensitivity);
  page.scenario_text = read_file(file_of(scenario.file));
  for (const auto& file : files_of_defaults(scenario.file, scenario.defaults))
    page.scenario_text += fmt::format("\n# defaults: {}\n", file.string()) + read_file(file);
  for (const Assumption& one : scenario.assumptions)
    page.assumptions.push_back({one.key, range_text(one), one.why});
  page.change = outputs.change;
  page.advice = outputs.advice;
  page.doubts = doubts_of(outputs);
  page.measured = outputs.measured;
  page.measured_figures = measured_figures(scenario);
  write_atomically(folder / "report.html", to_html(page));
}

namespace {

void print_assumptions(const Outputs& outputs, const Simulations& all, const Scenario& scenario) {
  for (std::size_t i = 0; i < scenario.calibrations.size(); ++i) {
    const Measurement& feed = scenario.calibrations[i];
    const double reached = all.reached.front()[i];
    const std::string point =
        point_name(feed.point) + (feed.over.empty() ? "" : " / " + point_name(feed.over));
    fmt::print("calibrated: {} = {:.4g}{} gives {} = {:.4g} at {}{}\n", feed.range.key,
               all.calibrated.front()[i], feed.range.unit, feed.column, reached, point,
               is_reached(feed, reached)
                   ? ""
                   : fmt::format("; no value of its range gives the expected {:.4g}", feed.value));
    if (const std::string doubt = calibration_doubt(feed.range.key, all.calibrated.front()[i]);
        !doubt.empty())
      fmt::print("{}\n", doubt);
    const auto missed = std::count_if(all.reached.begin(), all.reached.end(),
                                      [&](const auto& draw) { return !is_reached(feed, draw[i]); });
    if (missed > 0 && all.reached.size() > 1)
      fmt::print("  the expected figure is not reached in {} of {} draws of the assumptions\n", missed,
                 all.reached.size());
  }
  for (const std::string& key : outputs.unmoving)
    fmt::print("note: assumed {}: its range moves the step time at no point\n", key);
}

/// Prints the points that do not fit into memory and those that failed, with the reason.
void print_misfits(const Results& results) {
  for (const Row& row : results.rows) {
    const std::string why = row.text("why_not");
    if (!why.empty()) fmt::print("does not fit: {}: {}\n", without_controls(row.text("point")), why);
    const std::string reason = row.text("failed");
    if (!reason.empty()) fmt::print("failed: {}: {}\n", without_controls(row.text("point")), reason);
  }
}

std::vector<std::string> leading_columns(const Scenario& scenario) {
  std::vector<std::string> leading;
  for (const std::string& key : scenario.sweep_keys) {
    if (key != "workers") leading.push_back(key);
  }
  return leading;
}

/// Names the points whose form of simulation was not compared with one of every message.
void print_rough_points(const Results& shown) {
  std::vector<std::string> rough;
  for (const Row& row : shown.rows) {
    if (row.text("fidelity").ends_with("roughly") || row.text("folding").ends_with("roughly"))
      rough.push_back(row.text("point"));
  }
  if (rough.empty()) return;
  const std::size_t named = std::min<std::size_t>(rough.size(), 3);
  fmt::print(
      "Simulated roughly, with no known bound of the error (columns fidelity and folding): {} of {} "
      "points: {}{}. For every message: --set simulation.fidelity=message\n",
      rough.size(), shown.rows.size(), fmt::join(rough.begin(), rough.begin() + named, "; "),
      named < rough.size() ? "; ..." : "");
}

}  // namespace

void print_outputs(const Outputs& outputs, const Simulations& all, const Scenario& scenario,
                   const CheckedPoints& checked) {
  const Experiment& largest = checked.largest;
  Results shown = outputs.results;
  std::erase_if(shown.rows, [](const Row& row) { return !row.text("failed").empty(); });
  fmt::print("{}: {} on {}\n{} {}\n\n{}", scenario.name, largest.model.name, largest.platform.name,
             answer_of(shown, scenario.sweep_keys), outputs.change,
             to_string(results_table(shown, leading_columns(scenario)), terminal_width()));
  if (const std::string note = interval_note(shown, !all.log_errors.empty()); !note.empty())
    fmt::print("{}\n", note);
  const Table own = own_columns_table(shown, leading_columns(scenario));
  if (!own.columns.empty()) fmt::print("\n{}", to_string(own, terminal_width()));
  print_misfits(outputs.results);
  const auto print = [](const std::string& line) { fmt::print("{}\n", line); };
  std::ranges::for_each(equal_choices(shown), print);
  if (!outputs.worthy.empty()) print(outputs.worthy);
  std::ranges::for_each(outputs.advice, print);
  std::ranges::for_each(doubts_of(outputs), print);
  std::ranges::for_each(outputs.measured, print);
  print_assumptions(outputs, all, scenario);
  std::ranges::for_each(checked.notes, print);
  if (largest.campaign)
    fmt::print("note: campaign: the durations of trainings are drawn, and nothing is trained{}\n",
               largest.learning ? "; stepcast learn trains the points of this scenario" : "");
  print_rough_points(shown);
}

}  // namespace stepcast
