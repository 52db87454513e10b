#include "commands/compare/compare_traces.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>

#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "models/layer_times/trace.hpp"
#include "report/plots/breakdown.hpp"
#include "report/results/results_text.hpp"
#include "report/text/text_table.hpp"
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

}  // namespace

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

}  // namespace stepcast
