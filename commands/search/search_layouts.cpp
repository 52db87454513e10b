#include "commands/search/search_layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "commands/scenario_options.hpp"
#include "commands/search/layouts.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "forecast/resource_limits.hpp"
#include "forecast/simulate_point.hpp"
#include "report/statistics/statistics.hpp"
#include "report/text/display_text.hpp"
#include "scenarios/reader/sweep.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kShownLayouts = 10;
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

class LayoutSearch {
 public:
  LayoutSearch(const SearchCommand& command, const SearchedScenario& searched, Library& library)
      : searched_(searched), library_(library) {
    limits_.processes = command.processes;
    limits_.memory_limit = command.memory_limit;
    limits_.time_limit = command.time_limit;
    YamlNode document = searched.scenario.document;
    for (const Assignment& one : searched.draws.front()) assign(document, one);
    if (const YamlNode* found = find_path(document, "strategy")) strategy_ = *found;
  }

  /// Rows of the layouts in every draw.
  std::vector<TriedLayout> simulated(const std::vector<Layout>& layouts) {
    std::vector<Task> tasks;
    for (const Layout& layout : layouts) {
      for (const auto& draw : searched_.draws)
        tasks.push_back(
            [this, &draw, layout] { return to_json_line({}, row_of(draw, values_of(layout, strategy_))); });
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

  /// The layouts that fit. Of two that differ only in recomputation, the one without is faster.
  std::vector<Layout> fitting(const std::vector<Layout>& layouts) {
    std::vector<Task> tasks;
    for (const Layout& layout : layouts)
      tasks.push_back([this, layout] { return fits(layout) ? "fits" : ""; });
    std::vector<char> fitted(layouts.size());
    TaskProgress progress(tasks.size(), "layouts");
    run_tasks(tasks, limits_.processes, [&](std::size_t task, const std::string& text) {
      fitted[task] = !text.empty();
      progress.one_done();
    });
    progress.clear();
    std::vector<Layout> chosen;
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      const bool slower =
          layouts[i].recompute && fitted[i - 1];  // layouts_of lists the one without before it
      if (fitted[i] && !slower) chosen.push_back(layouts[i]);
    }
    return chosen;
  }

  Row as_written() { return row_of(searched_.draws.front(), {}); }

 private:
  bool fits(const Layout& layout) const {
    std::vector<Assignment> values = searched_.draws.front();
    std::ranges::copy(values_of(layout, strategy_), std::back_inserter(values));
    try {
      return build_experiment(searched_.scenario.document, std::move(values), library_).plan.fits;
    } catch (const InputError&) {
      return false;
    }
  }

  Row row_of(std::vector<Assignment> values, const std::vector<Assignment>& layout) const {
    std::ranges::copy(layout, std::back_inserter(values));
    try {
      const Experiment experiment =
          build_experiment(searched_.scenario.document, std::move(values), library_);
      const RunSize size = run_size(experiment, 1, 1);
      check_limits(size, limits_);
      check_time(experiment, size, limits_);
      return simulate_point(experiment, Doubled::none);
    } catch (const InputError& error) {
      return failed_row(error.what());
    } catch (const LimitError& error) {
      return failed_row(error.what());
    }
  }

  const SearchedScenario& searched_;
  Library& library_;
  RunOptions limits_;
  YamlNode strategy_;
};

/// For each layout, the share of the draws in which it is the fastest.
std::vector<double> shares_of_best(const std::vector<TriedLayout>& tried) {
  std::vector<double> shares(tried.size());
  const std::size_t draws = tried.front().draws.size();
  for (std::size_t draw = 0; draw < draws; ++draw) {
    const auto best = std::ranges::min_element(
        tried, {}, [draw](const TriedLayout& one) { return step_of(one.draws[draw]); });
    shares[static_cast<std::size_t>(best - tried.begin())] += 1.0 / static_cast<double>(draws);
  }
  return shares;
}

std::vector<std::string> layout_cells(const Layout& layout) {
  return {std::to_string(layout.stages), std::to_string(layout.tensor),      std::to_string(layout.replicas),
          std::to_string(layout.zero),   std::to_string(layout.micro_batch), layout.recompute ? "yes" : "no"};
}

std::string cell(const Row& row, const char* column, double factor, int decimals) {
  const auto value = row.number(column);
  return value ? fixed(factor * *value, decimals) : "-";
}

Table layout_table(const std::vector<TriedLayout>& ranked, const std::vector<double>& best) {
  Table table;
  table.columns = {{"pipeline"},    {"tensor"},      {"data"},      {"ZeRO"},
                   {"micro batch"}, {"recompute"},   {"step", "s"}, {"tokens/s a device"},
                   {"MFU", "%"},    {"memory", "GB"}};
  const bool several = ranked.front().draws.size() > 1;
  if (several) table.columns.push_back({"best in", "% of draws"});
  for (std::size_t i = 0; i < std::min(ranked.size(), kShownLayouts); ++i) {
    const Row& row = ranked[i].draws.front();
    std::vector<std::string> cells = layout_cells(ranked[i].layout);
    cells.push_back(fmt::format("{:.4g}", step_of(ranked[i])));
    cells.push_back(cell(row, "tokens_per_second_per_device", 1, 0));
    cells.push_back(cell(row, "mfu", 100, 1));
    cells.push_back(cell(row, "memory_bytes", 1e-9, 1));
    if (several) cells.push_back(fixed(100 * best[i], 0));
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
    row.set("zero", std::int64_t{layout.zero});
    row.set("micro_batch", layout.micro_batch);
    row.set("recompute", layout.recompute);
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
    fmt::print("The scenario as it is written does not run on these devices.\n");
  else
    fmt::print("The scenario as it is written takes {:.4g} s a step, {:.2f} times as long.\n", before,
               before / step_of(ranked.front()));
  fmt::print("These values are simulated without the discrepancy term.\n");
}

}  // namespace

void search_layouts(const SearchCommand& command, const SearchedScenario& searched, Library& library) {
  const Experiment written = build_experiment(searched.scenario.document, searched.draws.front(), library);
  const std::vector<Layout> layouts = layouts_of(written);
  if (command.dry_run) {
    fmt::print("{}: {} layouts, of which those that fit into memory are simulated\n", searched.scenario.name,
               layouts.size());
    return;
  }
  LayoutSearch search(command, searched, library);
  const std::vector<Layout> fitting = search.fitting(layouts);
  std::vector<TriedLayout> tried = search.simulated(fitting);
  std::erase_if(tried, [](const TriedLayout& one) { return step_of(one) == kNoStep; });
  if (tried.empty())
    throw InputError(fmt::format("none of the {} layouts fits into a device's memory", layouts.size()));
  std::ranges::stable_sort(tried, {}, [](const TriedLayout& one) { return step_of(one); });
  const std::filesystem::path folder = results_folder(command.output, searched.scenario.name + "-layouts");
  check_writable(folder);
  const FolderLock lock(folder);
  const std::string csv = to_csv(layout_results(searched, tried));
  write_atomically(folder / "layouts.csv", csv);
  print_layouts(tried, shares_of_best(tried), search.as_written(), layouts.size());
  add_json_rows("layouts", read_csv(csv, "layouts.csv"));
  fmt::print("written: {}\n", (folder / "layouts.csv").string());
}

}  // namespace stepcast
