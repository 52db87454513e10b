#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <string>

#include "commands/commands.hpp"
#include "commands/validate/validation_report.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "forecast/measured/training_log.hpp"
#include "models/layer_times/trace.hpp"
#include "report/plots/breakdown.hpp"
#include "report/results/results.hpp"
#include "report/text/display_text.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {
namespace {

constexpr std::array<const char*, 4> kPasses = {"forward", "backward data", "backward weights", "update"};

/// Medians of both traces for a layer or a group of layers [s].
struct Pair {
  std::string name;
  std::array<double, 4> first{}, second{};

  double sum(bool of_second) const {
    const auto& values = of_second ? second : first;
    return values[0] + values[1] + values[2] + values[3];
  }
};

double share_of_difference(double first, double second) {
  return first > 0 ? second / first - 1 : 0;
}

void add(Pair& to, const Pair& from) {
  for (std::size_t pass = 0; pass < kPasses.size(); ++pass) {
    to.first[pass] += from.first[pass];
    to.second[pass] += from.second[pass];
  }
}

std::vector<Pair> layer_pairs(const Trace& first, const Trace& second) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < first.layers.size(); ++i) {
    Pair pair{.name = first.layers[i].name};
    for (std::size_t pass = 0; pass < kPasses.size(); ++pass) {
      pair.first[pass] = median(passes(first.layers[i])[pass]->seconds).value;
      pair.second[pass] = median(passes(second.layers[i])[pass]->seconds).value;
    }
    pairs.push_back(pair);
  }
  return pairs;
}

/// Sums over layers of one kind, in the order in which the kinds first appear.
std::vector<Pair> kind_pairs(const std::vector<Pair>& layers, const Model& model) {
  std::vector<Pair> kinds;
  for (std::size_t i = 0; i < layers.size(); ++i) {
    const std::string kind = to_string(model.layers[i].kind);
    auto place = std::find_if(kinds.begin(), kinds.end(), [&](const Pair& one) { return one.name == kind; });
    if (place == kinds.end()) place = kinds.insert(kinds.end(), Pair{.name = kind});
    add(*place, layers[i]);
  }
  return kinds;
}

std::string milliseconds(double seconds) {
  return fmt::format("{:.4g}", 1e3 * seconds);
}

std::string difference(double first, double second) {
  return first > 0 ? fmt::format("{:+.1f}", 100 * share_of_difference(first, second)) : "";
}

Table table_of(const std::string& what, const std::vector<Pair>& pairs) {
  Table table;
  table.columns = {{what, "", Align::left, 40}, {"first", "ms"}, {"second", "ms"}, {"difference", "%"}};
  for (const char* pass : kPasses) table.columns.push_back({pass, "%"});
  for (const Pair& pair : pairs) {
    std::vector<std::string> row = {pair.name, milliseconds(pair.sum(false)), milliseconds(pair.sum(true)),
                                    difference(pair.sum(false), pair.sum(true))};
    for (std::size_t pass = 0; pass < kPasses.size(); ++pass)
      row.push_back(difference(pair.first[pass], pair.second[pass]));
    table.rows.push_back(std::move(row));
  }
  return table;
}

void append_rows(const std::string& group, const std::vector<Pair>& pairs, Results& results) {
  for (const Pair& pair : pairs) {
    for (std::size_t pass = 0; pass < kPasses.size(); ++pass) {
      if (pair.first[pass] <= 0 && pair.second[pass] <= 0) continue;
      Row row;
      row.set("group", group);
      row.set("name", pair.name);
      row.set("pass", kPasses[pass]);
      row.set("first_seconds", pair.first[pass]);
      row.set("second_seconds", pair.second[pass]);
      if (pair.first[pass] > 0)
        row.set("difference", share_of_difference(pair.first[pass], pair.second[pass]));
      results.rows.push_back(std::move(row));
    }
  }
}

/// States the error of the median layer, and the mean error of layers weighted by their time.
std::string summary(const std::vector<Pair>& layers, const Pair& step) {
  std::vector<double> errors;
  double weighted = 0;
  for (const Pair& layer : layers) {
    if (layer.sum(false) <= 0) continue;
    errors.push_back(std::abs(share_of_difference(layer.sum(false), layer.sum(true))));
    weighted += std::abs(layer.sum(true) - layer.sum(false));
  }
  return fmt::format(
      "layers differ by {:.1f} % in the median, by {:.1f} % weighted by time; the step by {:+.1f} %",
      100 * median(errors).value, 100 * weighted / std::max(1e-300, step.sum(false)),
      100 * share_of_difference(step.sum(false), step.sum(true)));
}

std::optional<PlotScript> bars(const std::vector<Pair>& kinds, const Trace& first, const Trace& second) {
  BreakdownPlot plot{.title = fmt::format("{}: first {}, second {}", first.model, first.name, second.name),
                     .label_name = "layer kind, first and second trace",
                     .parts = {kPasses.begin(), kPasses.end()},
                     .quantity = "time of a step"};
  for (const Pair& kind : kinds) {
    if (kind.sum(false) <= 0 && kind.sum(true) <= 0) continue;
    plot.bars.push_back({kind.name + " 1", {kind.first.begin(), kind.first.end()}});
    plot.bars.push_back({kind.name + " 2", {kind.second.begin(), kind.second.end()}});
  }
  return breakdown_script(plot);
}

void check_comparable(const Trace& first, const Trace& second) {
  if (first.layers.size() != second.layers.size() || first.model != second.model) {
    throw InputError(fmt::format("{} and {} are traces of {} and {}: expected the same network", first.name,
                                 second.name, first.model, second.model));
  }
  for (std::size_t i = 0; i < first.layers.size(); ++i) {
    if (first.layers[i].name != second.layers[i].name)
      throw InputError(fmt::format("layers[{}] is \"{}\" in {} and \"{}\" in {}", i, first.layers[i].name,
                                   first.name, second.layers[i].name, second.name));
  }
}

/// Prints how the times of a second trace differ from those of a first one, of the same network: per layer,
/// per layer kind and for the step. With a folder, writes traces.csv and draws bars per layer kind.
/// @throws InputError if a file is no trace or their layers differ
void compare_traces(const std::string& first_file, const std::string& second_file,
                    const std::string& folder) {
  if (!folder.empty()) check_writable(folder);
  Library library;
  const YamlNode first_name = command_line_name(first_file), second_name = command_line_name(second_file);
  const Trace& first = library.trace(YamlValue(first_name, "first trace"));
  const Trace& second = library.trace(YamlValue(second_name, "second trace"));
  check_comparable(first, second);
  const YamlNode model_name = command_line_name(first.model);
  const Model& model = library.model(YamlValue(model_name, "model of the trace"));
  check_fits(first, model);
  const std::vector<Pair> layers = layer_pairs(first, second), kinds = kind_pairs(layers, model);
  Pair step{.name = "step"};
  for (const Pair& layer : layers) add(step, layer);
  fmt::print("first:  {} ({})\nsecond: {} ({})\n\n", first.name, first.device, second.name, second.device);
  fmt::print("{}\n{}\n{}\n", to_string(table_of("layer", layers), terminal_width()),
             to_string(table_of("layer kind", kinds), terminal_width()),
             to_string(table_of("", {step}), terminal_width()));
  if (first.batch != second.batch) fmt::print("the batches differ: {} and {}\n", first.batch, second.batch);
  fmt::print("{}\n", summary(layers, step));
  if (folder.empty()) return;
  Results results;
  append_rows("layer", layers, results);
  append_rows("kind", kinds, results);
  append_rows("step", {step}, results);
  write_atomically(std::filesystem::path(folder) / "traces.csv", to_csv(results));
  if (const auto script = bars(kinds, first, second)) {
    if (const auto complaint = draw_plot(folder, "traces", *script)) fmt::print("{}\n", *complaint);
  }
  fmt::print("written: {}\n", folder);
}

struct CompareOptions {
  std::string predicted, measured, folder;
  JoinKeys keys;
};

bool has(const Results& results, const std::string& column) {
  return std::any_of(results.rows.begin(), results.rows.end(),
                     [&](const Row& row) { return !row.text(column).empty(); });
}

Results read(const std::string& file, const JoinKeys& keys) {
  Results results = read_runs(parse_run_file(file));
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
                         "Compare a forecast with measurements, such as those of a real cluster, "
                         "or two traces layer by layer.");
  auto options = std::make_shared<CompareOptions>();
  command.add_option("predicted", options->predicted, "File results.csv of a forecast, or a trace.")
      .required();
  command
      .add_option("measured", options->measured,
                  "CSV file of measurements, a trainer's log, or a second trace. Several rows of one point, "
                  "and the steps of a "
                  "log, are repeats: their median and its 95 % interval are compared. A log that does not "
                  "say its number of "
                  "workers has it before its name, such as 8=run.log.")
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
