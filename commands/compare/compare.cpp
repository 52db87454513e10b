#include <fmt/format.h>

#include <algorithm>

#include "commands/commands.hpp"
#include "commands/compare/compare_traces.hpp"
#include "commands/validate/validation_report.hpp"
#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "report/results/results_text.hpp"
#include "report/text/text_table.hpp"

namespace stepcast {
namespace {

struct CompareOptions {
  std::string predicted, measured, folder;
  JoinKeys keys;
};

bool has(const Results& results, const std::string& column) {
  return std::any_of(results.rows.begin(), results.rows.end(),
                     [&](const Row& row) { return !row.text(column).empty(); });
}

Results read(const std::string& file, const JoinKeys& keys) {
  Results results = read_csv(read_file(file), file);
  std::vector<std::string> needed = keys.by;
  needed.push_back(keys.column);
  for (const std::string& column : needed) {
    if (has(results, column)) continue;
    const bool tells_apart = column != keys.column;
    throw InputError(fmt::format("{}: expected a column \"{}\"; {}", file, column,
                                 tells_apart
                                     ? "--by names the columns that identify a point, such as --by workers"
                                     : "--column names the column to compare"));
  }
  return results;
}

Table table_of(const std::vector<PointComparison>& comparisons, const std::string& column) {
  Table table;
  table.columns = {{"point", "", Align::left, 60}, {"predicted", column}, {"measured", column},
                   {"95 % interval", "%"},         {"of measurements"},   {"error", "%"}};
  for (const PointComparison& one : comparisons) {
    table.rows.push_back({one.point, fmt::format("{:.4g}", one.predicted),
                          fmt::format("{:.4g}", one.measured), one.repeats < 2 ? "" : interval_text(one),
                          std::to_string(one.repeats), fmt::format("{:+.1f}", 100 * one.error())});
  }
  return table;
}

Results rows_of(const std::vector<PointComparison>& comparisons, const std::string& column) {
  Results results;
  for (const PointComparison& one : comparisons) {
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

/// A path that ends in .yaml, or a name of the library.
bool is_trace(const std::string& name) {
  return name.ends_with(".yaml") || name.find_first_of("./") == std::string::npos;
}

void compare(const CompareOptions& options) {
  if (is_trace(options.predicted) && is_trace(options.measured))
    return compare_traces(options.predicted, options.measured, options.folder);
  const std::string& column = options.keys.column;
  if (!options.folder.empty()) check_writable(options.folder);
  const auto comparisons = compare_points(read(options.predicted, options.keys),
                                          read(options.measured, options.keys), options.keys);
  if (comparisons.empty()) {
    throw InputError(fmt::format("{} and {} have no common point with a number above 0 in column \"{}\"",
                                 options.predicted, options.measured, column));
  }
  fmt::print("{}", to_string(table_of(comparisons, column), terminal_width()));
  for (const std::string& line : summary_lines(comparisons)) fmt::print("{}\n", line);
  add_json_rows("comparison", rows_of(comparisons, column));
  if (options.folder.empty()) return;
  write_atomically(std::filesystem::path(options.folder) / "comparison.csv",
                   to_csv(rows_of(comparisons, column)));
  plot_comparison(comparisons, column, options.folder);
  fmt::print("written: {}\n", options.folder);
}

}  // namespace

void add_compare(Command app) {
  const Command command =
      app.add_subcommand("compare",
                         "Compare a forecast with measurements, such as those of a real cluster: "
                         "error of each point and statistics. Or compare two traces by layer.");
  auto options = std::make_shared<CompareOptions>();
  command.add_option("predicted", options->predicted, "File results.csv of a forecast, or a trace.")
      .required();
  command
      .add_option(
          "measured", options->measured,
          "CSV file of measurements. Several rows of one point are repetitions: their median and its 95 % "
          "interval are compared. Or a second trace.")
      .required();
  command.add_option("--column", options->keys.column, "Column to compare; both files have it.")
      .show_default();
  command
      .add_option("--by", options->keys.by,
                  "Columns that identify a point, separated by commas; both files have them.")
      .delimiter(',')
      .show_default();
  command.add_option("-o", options->folder,
                     "Folder for comparison.csv and a scatter plot. Default: only print the comparison.");
  command.footer("Example: stepcast compare forecast/results.csv measured.csv --by workers");
  command.callback([=] { compare(*options); }, Command::Json::yes);
}

}  // namespace stepcast
