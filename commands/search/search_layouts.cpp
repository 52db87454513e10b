#include "commands/search/search_layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "commands/scenario_options.hpp"
#include "commands/search/best_probabilities.hpp"
#include "commands/search_space/possible_layouts.hpp"
#include "commands/search_space/search_space.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "forecast/discrepancy.hpp"
#include "forecast/resource_limits.hpp"
#include "forecast/simulate_point.hpp"
#include "report/statistics/statistics.hpp"
#include "report/text/display_text.hpp"
#include "scenarios/reader/sweep.hpp"
#include "strategies/registry.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kShownLayouts = 10;
constexpr int kInterleaved = 10;  ///< pipelines that are tried with several chunks a stage, too
constexpr int kMostWorkers = 10'000'000;
constexpr const char *kFits = "fits", *kTooLarge = "too large";
constexpr double kNoStep = std::numeric_limits<double>::infinity();

/// A layout, and its rows of results by draw. Rows that failed have the column `failed`.
struct TriedLayout {
  Layout layout;
  std::vector<Row> draws;
};

double step_of(const Row& row) {
  return row.number("step_seconds").value_or(kNoStep);
}

/// Median of the draws, which all succeeded or all failed.
double step_of(const TriedLayout& tried) {
  std::vector<double> steps;
  for (const Row& row : tried.draws) steps.push_back(step_of(row));
  return median_of(steps);
}

/// The scenario in the first draw.
YamlNode document_of(const SearchedScenario& searched, Library& library) {
  YamlNode document = document_with(searched.scenario.document, searched.draws.front(), library);
  if (find_path(document, "strategy") == nullptr)
    throw InputError(searched.scenario.file.string() + ": strategy: missing");
  return document;
}

/// Samples of a step as the scenario is written; if it cannot be built with its workers, `global_batch` or
/// those of as many replicas.
std::int64_t samples_of(const SearchedScenario& searched, const YamlNode& document, int workers,
                        Library& library) {
  constexpr std::int64_t kMost = 1'000'000'000;
  try {
    return std::llround(
        build_experiment(searched.scenario.document, searched.draws.front(), library).plan.samples_a_step);
  } catch (const InputError&) {
    if (const YamlNode* all = find_path(document, "global_batch"))
      return YamlValue(*all, "global_batch").integer(1, kMost);
    const YamlNode* batch = find_path(document, "batch_per_worker");
    if (batch == nullptr) throw InputError("search: --layouts needs global_batch or batch_per_worker");
    return YamlValue(*batch, "batch_per_worker").integer(1, kMost) * workers;
  }
}

/// The scenario with plain replicas, because its own layout need not be possible with its workers.
Experiment with_replicas(const SearchedScenario& searched, const YamlNode& document, Library& library) {
  Layout replicas;
  if (const YamlNode* workers = find_path(document, "workers"))
    replicas.replicas = YamlValue(*workers, "workers").integer(1, kMostWorkers);
  return build_experiment(searched.scenario.document,
                          layout_values(searched.scenario.document, searched.draws.front(), replicas,
                                        *find_path(document, "strategy")),
                          library);
}

/// The layouts that fit, or why none does.
struct Fitting {
  std::vector<Layout> layouts;
  std::string why_none;
};

class LayoutSearch {
 public:
  LayoutSearch(const SearchCommand& command, const SearchedScenario& searched, Library& library)
      : searched_(searched),
        library_(library),
        limits_(limits_of(command)),
        strategy_(*find_path(document_of(searched, library), "strategy")) {}

  /// Rows of the layouts in every draw.
  std::vector<TriedLayout> simulated(const std::vector<Layout>& layouts) {
    std::vector<Task> tasks;
    for (const Layout& layout : layouts) {
      for (std::size_t draw = 0; draw < searched_.draws.size(); ++draw)
        tasks.push_back([this, values = layout_values(searched_.scenario.document, searched_.draws[draw],
                                                      layout, strategy_)] {
          return to_json_line({}, simulated_setting(searched_, values, library_, limits_));
        });
    }
    std::vector<TriedLayout> tried;
    for (const Layout& layout : layouts) tried.push_back({layout, std::vector<Row>(searched_.draws.size())});
    TaskProgress progress(tasks.size(), "simulations");
    run_tasks(tasks, limits_.processes, [&](std::size_t task, const std::string& text) {
      tried[task / searched_.draws.size()].draws[task % searched_.draws.size()] =
          read_json_lines(text + "\n", "layout").rows.at(0);
      progress.one_done();
    });
    progress.clear();
    return tried;
  }

  /// The layouts that fit. Of those that differ only in what is computed again, the one with least is the
  /// fastest.
  Fitting fitting(const std::vector<Layout>& layouts) {
    std::vector<Task> tasks;
    for (const Layout& layout : layouts) tasks.push_back([this, layout] { return outcome_of(layout); });
    std::vector<std::string> outcomes(layouts.size());
    TaskProgress progress(tasks.size(), "layouts");
    run_tasks(tasks, limits_.processes, [&](std::size_t task, const std::string& text) {
      outcomes[task] = text;
      progress.one_done();
    });
    progress.clear();
    Fitting found;
    std::vector<Layout>& chosen = found.layouts;
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      const bool slower =
          !chosen.empty() && name_without_recompute(chosen.back()) == name_without_recompute(layouts[i]);
      if (outcomes[i] == kFits && !slower) chosen.push_back(layouts[i]);
    }
    const bool all_refused = std::ranges::find(outcomes, kTooLarge) == outcomes.end() && !outcomes.empty();
    found.why_none = all_refused
                         ? outcomes.front()
                         : fmt::format("none of the {} layouts fits into a device's memory", layouts.size());
    return found;
  }

 private:
  /// kFits, kTooLarge, or why the layout is refused.
  std::string outcome_of(const Layout& layout) const {
    try {
      const Experiment experiment = build_experiment(
          searched_.scenario.document,
          layout_values(searched_.scenario.document, searched_.draws.front(), layout, strategy_), library_);
      return experiment.plan.fits ? kFits : kTooLarge;
    } catch (const InputError& error) {
      return error.what();
    }
  }

  const SearchedScenario& searched_;
  Library& library_;
  RunLimits limits_;
  YamlNode strategy_;
};

/// The layouts that could be simulated, the fastest first.
std::vector<TriedLayout> ranked(std::vector<TriedLayout> tried) {
  std::erase_if(tried, [](const TriedLayout& one) { return step_of(one) == kNoStep; });
  std::ranges::stable_sort(tried, {}, [](const TriedLayout& one) { return step_of(one); });
  return tried;
}

/// The fastest pipelines, interleaved.
std::vector<Layout> interleaved_pipelines(const std::vector<TriedLayout>& ranked, const Model& model) {
  std::vector<Layout> layouts;
  int pipelines = 0;
  for (const TriedLayout& one : ranked) {
    if (one.layout.stages == 1 || ++pipelines > kInterleaved) continue;
    std::ranges::copy(interleaved(one.layout, model), std::back_inserter(layouts));
  }
  return layouts;
}

/// For each layout, the probability that it is the fastest.
std::vector<double> best_of(const std::vector<TriedLayout>& tried, Library& library) {
  std::vector<std::vector<double>> rates;
  for (const TriedLayout& one : tried) {
    rates.emplace_back();
    for (const Row& row : one.draws) rates.back().push_back(1 / step_of(row));
  }
  return best_probabilities(rates, shipped_discrepancy(library).measured.own);
}

/// An axis or division that only some networks use, and so a column that only some tables have.
struct RareColumn {
  const char* name;
  int Layout::*ways;
};

/// Those that a layout uses.
std::vector<RareColumn> rare_columns(const std::vector<TriedLayout>& ranked) {
  std::vector<RareColumn> used{
      {"chunks", &Layout::chunks}, {"context", &Layout::context}, {"expert", &Layout::expert}};
  std::erase_if(used, [&](const RareColumn& column) {
    return std::ranges::none_of(ranked, [&](const TriedLayout& one) { return one.layout.*column.ways > 1; });
  });
  return used;
}

std::vector<std::string> layout_cells(const Layout& layout, const std::vector<RareColumn>& rare) {
  std::vector<std::string> cells{std::to_string(layout.stages), std::to_string(layout.tensor),
                                 std::to_string(layout.replicas)};
  for (const RareColumn& column : rare) cells.push_back(std::to_string(layout.*column.ways));
  cells.insert(cells.end(), {std::to_string(layout.zero), std::to_string(layout.micro_batch),
                             to_string(layout.recompute)});
  return cells;
}

std::string cell(const Row& row, const char* column, double factor, int decimals) {
  const auto value = row.number(column);
  return value ? fixed(factor * *value, decimals) : "-";
}

Table layout_table(const std::vector<TriedLayout>& ranked, const std::vector<double>& best) {
  const std::vector<RareColumn> rare = rare_columns(ranked);
  Table table;
  table.columns = {{"pipeline"}, {"tensor"}, {"data"}};
  for (const RareColumn& column : rare) table.columns.push_back({column.name});
  table.columns.insert(table.columns.end(), {{"ZeRO"},
                                             {"micro batch"},
                                             {"recompute"},
                                             {"step", "s"},
                                             {"tokens/s a device"},
                                             {"MFU", "%"},
                                             {"memory", "GB"},
                                             {"best with", "%"}});
  for (std::size_t i = 0; i < std::min(ranked.size(), kShownLayouts); ++i) {
    const Row& row = ranked[i].draws.front();
    std::vector<std::string> cells = layout_cells(ranked[i].layout, rare);
    cells.push_back(fmt::format("{:.4g}", step_of(ranked[i])));
    cells.push_back(cell(row, "tokens_per_second_per_device", 1, 0));
    cells.push_back(cell(row, "mfu", 100, 1));
    cells.push_back(cell(row, "memory_bytes", 1e-9, 1));
    cells.push_back(fixed(100 * best[i], 0));
    table.rows.push_back(std::move(cells));
  }
  return table;
}

Results layout_results(const SearchedScenario& searched, const std::vector<TriedLayout>& ranked) {
  Results results{searched.scenario.name, {}};
  for (const TriedLayout& tried : ranked) {
    Row row;
    row.set("point", to_string(tried.layout));
    const Layout& layout = tried.layout;
    row.set("pipeline", std::int64_t{layout.stages});
    row.set("tensor", std::int64_t{layout.tensor});
    row.set("data", std::int64_t{layout.replicas});
    row.set("expert", std::int64_t{layout.expert});
    row.set("context", std::int64_t{layout.context});
    row.set("chunks", std::int64_t{layout.chunks});
    row.set("zero", std::int64_t{layout.zero});
    row.set("micro_batch", layout.micro_batch);
    row.set("recompute", to_string(layout.recompute));
    for (const auto& [column, value] : tried.draws.front().cells)
      if (column != "scenario") row.set(column, value);
    row.set("step_seconds", step_of(tried));
    results.rows.push_back(std::move(row));
  }
  return results;
}

void print_layouts(const std::vector<TriedLayout>& ranked, const std::vector<double>& best,
                   const Row& as_written, std::size_t tried) {
  fmt::print("{} layouts, of which {} fit into memory\n{}", tried, ranked.size(),
             to_string(layout_table(ranked, best), terminal_width()));
  fmt::print("best: {}\n", to_string(ranked.front().layout));
  const double before = step_of(as_written);
  const auto* fits = std::get_if<bool>(&as_written.at("fits"));
  if (!as_written.text("failed").empty() || (fits != nullptr && !*fits))
    fmt::print("As the scenario is written, it does not run on these devices.\n");
  else
    fmt::print(
        "As the scenario is written, a step takes {:.4g} s; the best layout is {:.2f} times as fast.\n",
        before, before / step_of(ranked.front()));
  fmt::print("These values are simulated without the discrepancy term.\n");
  std::vector<std::string> names;
  for (const TriedLayout& one : ranked) names.push_back(to_string(one.layout));
  fmt::print("{}\n", told_apart_line(names, best));
}

}  // namespace

void search_layouts(const SearchCommand& command, const SearchedScenario& searched, Library& library) {
  const YamlNode document = document_of(searched, library);
  const Experiment plain = with_replicas(searched, document, library);
  const std::vector<Layout> layouts =
      layouts_of(plain, samples_of(searched, document, plain.plan.workers, library));
  if (command.dry_run) {
    fmt::print("{}: {} layouts, of which those that fit into memory are simulated\n", searched.scenario.name,
               layouts.size());
    return;
  }
  LayoutSearch search(command, searched, library);
  const Fitting fitting = search.fitting(layouts);
  if (fitting.layouts.empty()) throw InputError(fitting.why_none);
  std::vector<TriedLayout> tried = ranked(search.simulated(fitting.layouts));
  if (tried.empty()) throw InputError("no layout could be simulated within the limits of memory and time");
  const std::vector<Layout> more = interleaved_pipelines(tried, plain.model);
  std::ranges::move(search.simulated(search.fitting(more).layouts), std::back_inserter(tried));
  tried = ranked(std::move(tried));
  const std::filesystem::path folder = results_folder(command.output, searched.scenario.name + "-layouts");
  check_writable(folder);
  const FolderLock lock(folder);
  const std::string csv = to_csv(layout_results(searched, tried));
  write_atomically(folder / "layouts.csv", csv);
  print_layouts(tried, best_of(tried, library), SearchSimulator(searched, library, command).as_written(),
                layouts.size() + more.size());
  add_json_rows("layouts", read_csv(csv, "layouts.csv"));
  fmt::print("written: {}\n", (folder / "layouts.csv").string());
}

}  // namespace stepcast
