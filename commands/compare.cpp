#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "commands/commands.hpp"
#include "commands/validation_plots.hpp"
#include "core/error.hpp"
#include "report/atomic_file.hpp"
#include "report/csv.hpp"
#include "report/table.hpp"

namespace stepcast {
namespace {

struct CompareOptions {
  std::string predicted, measured, folder;
  Joining joining;
};

bool has(const Results& results, const std::string& column) {
  return std::any_of(results.rows.begin(), results.rows.end(),
                     [&](const Row& row) { return !row.text(column).empty(); });
}

Results read(const std::string& file, const Joining& joining) {
  Results results = read_csv(read_file(file), file);
  std::vector<std::string> needed = joining.by;
  needed.push_back(joining.column);
  for (const std::string& column : needed) {
    if (has(results, column)) continue;
    const bool tells_apart = column != joining.column;
    throw InputError(fmt::format("{}: expected a column \"{}\"; {}", file, column,
                                 tells_apart
                                     ? "--by says which columns tell points apart, such as --by workers"
                                     : "--column says what to compare"));
  }
  return results;
}

Table table_of(const std::vector<PointOutcome>& outcomes, const std::string& column) {
  Table table;
  table.columns = {{"point", "", Align::left, 60}, {"predicted", column}, {"measured", column},
                   {"95 % interval", "%"},         {"of measurements"},   {"error", "%"}};
  for (const PointOutcome& one : outcomes) {
    table.rows.push_back({one.point, fmt::format("{:.4g}", one.predicted),
                          fmt::format("{:.4g}", one.measured), one.repeats < 2 ? "" : interval_text(one),
                          std::to_string(one.repeats), fmt::format("{:+.1f}", 100 * one.error())});
  }
  return table;
}

Results rows_of(const std::vector<PointOutcome>& outcomes, const std::string& column) {
  Results results;
  for (const PointOutcome& one : outcomes) {
    Row row;
    row.set("point", one.point);
    row.set("strategy", one.strategy);
    row.set("column", column);
    row.set("repeats", std::int64_t{one.repeats});
    row.set("predicted", one.predicted);
    row.set("measured", one.measured);
    row.set("measured_low", one.low);
    row.set("measured_high", one.high);
    row.set("error", one.error());
    results.rows.push_back(std::move(row));
  }
  return results;
}

void compare(const CompareOptions& options) {
  const std::string& column = options.joining.column;
  if (!options.folder.empty()) check_writable(options.folder);
  const auto outcomes = outcomes_of(read(options.predicted, options.joining),
                                    read(options.measured, options.joining), options.joining);
  if (outcomes.empty()) {
    throw InputError(fmt::format("{} and {} have no point in common with a number above 0 in column \"{}\"",
                                 options.predicted, options.measured, column));
  }
  fmt::print("{}", to_string(table_of(outcomes, column)));
  for (const std::string& line : summary_lines(outcomes)) fmt::print("{}\n", line);
  if (options.folder.empty()) return;
  write_atomically(std::filesystem::path(options.folder) / "comparison.csv",
                   to_csv(rows_of(outcomes, column)));
  plot_comparison(outcomes, column, options.folder);
  fmt::print("written: {}\n", options.folder);
}

}  // namespace

void add_compare(CLI::App& app) {
  auto* command = app.add_subcommand(
      "compare",
      "A forecast beside measurements, of a real cluster's logs say: error of each point, statistics");
  auto options = std::make_shared<CompareOptions>();
  command->add_option("predicted", options->predicted, "results.csv of a forecast")->required();
  command
      ->add_option("measured", options->measured,
                   "CSV file; rows of one point are repeats: their median and its 95 % interval count")
      ->required();
  command->add_option("--column", options->joining.column, "column to compare, in both files")
      ->capture_default_str();
  command->add_option("--by", options->joining.by, "columns that tell points apart, in both files")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("-o", options->folder, "folder for comparison.csv and scatter plot");
  command->footer("Example: stepcast compare forecast/results.csv measured.csv --by workers");
  command->callback([=] { compare(*options); });
}

}  // namespace stepcast
