#include "commands/validation_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include "commands/validation_plots.hpp"
#include "report/atomic_file.hpp"
#include "report/csv.hpp"
#include "report/human.hpp"
#include "report/json_lines.hpp"
#include "report/sha256.hpp"
#include "report/table.hpp"
#include "validate/learning_curves.hpp"
#include "validate/outcome.hpp"

namespace stepcast {
namespace {

Table outcome_table(const std::vector<PointOutcome>& outcomes) {
  Table table;
  table.columns = {
      {"point", "", Align::left, 60}, {"predicted"}, {"measured"},   {"95 % interval", "%"}, {"error", "%"},
      {"compute predicted"},          {"measured"},  {"thrown away"}};
  for (const PointOutcome& one : outcomes) {
    table.rows.push_back({one.point, human(Seconds{one.predicted}), human(Seconds{one.measured}),
                          interval_text(one), fmt::format("{:+.1f}", 100 * one.error()),
                          human(Seconds{one.predicted_compute}), human(Seconds{one.measured_compute}),
                          std::to_string(one.disturbed)});
  }
  return table;
}

/// What was learned, if anything was.
void report_learning(const Results& predicted, const std::filesystem::path& folder) {
  const auto file = folder / "learning.jsonl";
  if (!std::filesystem::exists(file)) return;
  const Results learning =
      with_forecast(read_json_lines(read_file(file), file.string(), TornLine::drop), predicted);
  write_atomically(folder / "learning.csv", to_csv(learning));
  for (const std::string& line : learning_lines(learning)) fmt::print("{}\n", line);
  const auto script = curve_script(loss_curves(learning));
  if (!script) return;
  if (const auto complaint = draw_plot(folder, "loss-vs-time", *script)) fmt::print("{}\n", *complaint);
}

}  // namespace

void freeze(const Results& predicted, const std::filesystem::path& folder) {
  const std::string text = to_csv(predicted);
  write_atomically(folder / "predicted.csv", text);
  write_atomically(folder / "predicted.sha256", sha256(text) + "  predicted.csv\n");
  if (isatty(2) != 0) fmt::print(stderr, "\r{:100}\r", "");  // the line of progress
  fmt::print("forecast of {} points written before the runs: SHA-256 {}\n", predicted.rows.size(),
             sha256(text));
  std::fflush(stdout);
}

void report_validation(const Results& predicted, const std::string& cluster, int ranks,
                       const std::filesystem::path& folder) {
  const auto file = folder / "samples.jsonl";
  const Results samples = read_json_lines(read_file(file), file.string(), TornLine::drop);
  auto outcomes = outcomes_of(predicted, samples);
  for (PointOutcome& one : outcomes) one.ranks = ranks;  // servers too, not workers alone
  write_atomically(folder / "samples.csv", to_csv(samples));
  write_atomically(folder / "measured.csv", to_csv(results_of(outcomes, predicted.scenario, cluster)));
  fmt::print("{}", to_string(outcome_table(outcomes)));
  for (const std::string& line : summary_lines(outcomes)) fmt::print("{}\n", line);
  plot_validation(outcomes, predicted.scenario, folder);
  report_learning(predicted, folder);
  fmt::print("written: {}\n", folder.string());
}

std::string measured_so_far(const std::filesystem::path& folder) {
  const auto file = folder / "samples.jsonl";
  if (!std::filesystem::exists(file)) return "nothing was measured yet";
  const Results samples = read_json_lines(read_file(file), file.string(), TornLine::drop);
  return fmt::format("{} runs measured so far: {}", samples.rows.size(), file.string());
}

}  // namespace stepcast
