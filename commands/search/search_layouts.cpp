#include "commands/search/search_layouts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <optional>

#include "commands/scenario_options.hpp"
#include "commands/search/told_apart.hpp"
#include "commands/search_space.hpp"
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

/// Samples of a step: `global_batch`, or those of all workers.
std::int64_t samples_of(const YamlNode& document, int workers) {
  constexpr std::int64_t kMost = 1'000'000'000;
  if (const YamlNode* all = find_path(document, "global_batch"))
    return YamlValue(*all, "global_batch").integer(1, kMost);
  const YamlNode* batch = find_path(document, "batch_per_worker");
  if (batch == nullptr) throw InputError("search: --layouts needs global_batch or batch_per_worker");
  return YamlValue(*batch, "batch_per_worker").integer(1, kMost) * workers;
}

/// All layouts of the scenario, whose own layout need not be possible with its workers.
std::vector<Layout> layouts_of_scenario(const SearchedScenario& searched, Library& library) {
  const YamlNode document = document_of(searched, library);
  std::vector<Assignment> values =
      joined(searched.draws.front(), values_of({}, *find_path(document, "strategy")));
  std::erase_if(values, [](const Assignment& one) { return one.path == "global_batch"; });
  if (find_path(searched.scenario.document, "global_batch") != nullptr)
    values.push_back(removal("global_batch"));
  values.push_back(assignment("batch_per_worker", 1));
  const Experiment replicas = build_experiment(searched.scenario.document, std::move(values), library);
  return layouts_of(replicas, samples_of(document, replicas.plan.workers));
}

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
      for (const auto& draw : searched_.draws)
        tasks.push_back([this, values = joined(draw, values_of(layout, strategy_))] {
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

  /// The layouts that fit. Of two that differ only in recomputation, the one without is faster.
  /// @throws InputError if none fits: with a reason why, if all were refused
  std::vector<Layout> fitting(const std::vector<Layout>& layouts) {
    std::vector<Task> tasks;
    for (const Layout& layout : layouts) tasks.push_back([this, layout] { return outcome_of(layout); });
    std::vector<std::string> outcomes(layouts.size());
    TaskProgress progress(tasks.size(), "layouts");
    run_tasks(tasks, limits_.processes, [&](std::size_t task, const std::string& text) {
      outcomes[task] = text;
      progress.one_done();
    });
    progress.clear();
    std::vector<Layout> chosen;
    for (std::size_t i = 0; i < layouts.size(); ++i) {
      const bool slower =
          layouts[i].recompute && outcomes[i - 1] == kFits;  // the one without stands before it
      if (outcomes[i] == kFits && !slower) chosen.push_back(layouts[i]);
    }
    if (!chosen.empty()) return chosen;
    if (std::ranges::find(outcomes, kTooLarge) == outcomes.end() && !outcomes.empty())
      throw InputError(outcomes.front());
    throw InputError(fmt::format("none of the {} layouts fits into a device's memory", layouts.size()));
  }

 private:
  /// kFits, kTooLarge, or why the layout is refused.
  std::string outcome_of(const Layout& layout) const {
    try {
      const Experiment experiment =
          build_experiment(searched_.scenario.document,
                           joined(searched_.draws.front(), values_of(layout, strategy_)), library_);
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

/// For each layout, the probability that it is the fastest.
std::vector<double> best_of(const std::vector<TriedLayout>& tried, Library& library) {
  std::vector<std::vector<double>> rates;
  for (const TriedLayout& one : tried) {
    rates.emplace_back();
    for (const Row& row : one.draws) rates.back().push_back(1 / step_of(row));
  }
  return best_probabilities(rates, shipped_discrepancy(library).measured.own);
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
  table.columns.push_back({"best with", "%"});
  for (std::size_t i = 0; i < std::min(ranked.size(), kShownLayouts); ++i) {
    const Row& row = ranked[i].draws.front();
    std::vector<std::string> cells = layout_cells(ranked[i].layout);
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
  const std::vector<Layout> layouts = layouts_of_scenario(searched, library);
  if (command.dry_run) {
    fmt::print("{}: {} layouts, of which those that fit into memory are simulated\n", searched.scenario.name,
               layouts.size());
    return;
  }
  LayoutSearch search(command, searched, library);
  const std::vector<Layout> fitting = search.fitting(layouts);
  std::vector<TriedLayout> tried = search.simulated(fitting);
  std::erase_if(tried, [](const TriedLayout& one) { return step_of(one) == kNoStep; });
  if (tried.empty()) throw InputError("no layout could be simulated within the limits of memory and time");
  std::ranges::stable_sort(tried, {}, [](const TriedLayout& one) { return step_of(one); });
  const std::filesystem::path folder = results_folder(command.output, searched.scenario.name + "-layouts");
  check_writable(folder);
  const FolderLock lock(folder);
  const std::string csv = to_csv(layout_results(searched, tried));
  write_atomically(folder / "layouts.csv", csv);
  print_layouts(tried, best_of(tried, library), SearchSimulator(searched, library, command).as_written(),
                layouts.size());
  add_json_rows("layouts", read_csv(csv, "layouts.csv"));
  fmt::print("written: {}\n", (folder / "layouts.csv").string());
}

namespace {

constexpr std::array<std::int64_t, 4> kMicroBatches{1, 2, 4, 8};

/// ZeRO stages of a division. A pipeline would gather or scatter once more for every micro-batch with stages
/// 2 and 3.
std::vector<int> zero_stages(int stages, int replicas) {
  if (replicas == 1) return {0};
  return stages == 1 ? std::vector{0, 1, 2, 3} : std::vector{0, 1};
}

void add_layouts(Layout layout, std::int64_t samples, std::vector<Layout>& layouts) {
  if (samples % layout.replicas != 0) return;
  const std::int64_t whole = samples / layout.replicas;
  std::vector<std::int64_t> sizes(kMicroBatches.begin(), kMicroBatches.end());
  if (whole > sizes.back()) sizes.push_back(whole);
  for (const std::int64_t micro_batch : sizes) {
    if (whole % micro_batch != 0) continue;
    layout.micro_batch = micro_batch;
    layout.micro_batches = whole / micro_batch;
    for (const int zero : zero_stages(layout.stages, layout.replicas)) {
      layout.zero = zero;
      for (const bool recompute : {false, true}) {
        layout.recompute = recompute;
        layouts.push_back(layout);
      }
    }
  }
}

}  // namespace

std::vector<Layout> layouts_of(const Experiment& experiment, std::int64_t samples) {
  const int workers = experiment.plan.workers;
  const int blocks = static_cast<int>(experiment.model.blocks.size());
  std::vector<Layout> layouts;
  for (int tensor = 1; tensor <= experiment.platform.devices_per_node; tensor *= 2) {
    for (int stages = 1; stages <= std::max(blocks, 1); ++stages) {
      if (blocks % stages != 0 || workers % (stages * tensor) != 0) continue;
      add_layouts({.stages = stages, .tensor = tensor, .replicas = workers / (stages * tensor)}, samples,
                  layouts);
    }
  }
  return layouts;
}

std::string to_string(const Layout& layout) {
  std::string text =
      fmt::format("pipeline {}, tensor {}, data {}", layout.stages, layout.tensor, layout.replicas);
  if (layout.zero > 0) text += fmt::format(", ZeRO {}", layout.zero);
  text += fmt::format(", micro-batch {}", layout.micro_batch);
  return layout.recompute ? text + ", recompute" : text;
}

std::vector<Assignment> values_of(const Layout& layout, const YamlNode& strategy) {
  constexpr std::array kDividing{"mesh",         "shard", "shard_within",  "stages",       "tensor",
                                 "zero",         "stage", "micro_batches", "accumulation", "ways",
                                 "split_points", "split", "schedule",      "chunks",       "recompute"};
  constexpr std::array kShards{"none", "optimizer", "gradients", "parameters"};
  std::vector<Assignment> values;
  const auto set = [&values](const char* key, auto value) {
    values.push_back(assignment(std::string("strategy.") + key, value));
  };
  for (const auto& [key, value] : strategy.entries) {
    const bool divides = std::ranges::find(kDividing, key.text) != kDividing.end();
    const std::string path = "strategy." + key.text;
    if (divides || !has_option(kPlainReplicas, path)) values.push_back(removal(path));
  }
  set("kind", kPlainReplicas);
  set("mesh", std::vector{assignment("pipeline", layout.stages), assignment("tensor", layout.tensor)});
  set("shard", kShards.at(static_cast<std::size_t>(layout.zero)));
  set("accumulation", layout.micro_batches);
  set("recompute", layout.recompute);
  set("split", "blocks");
  return values;
}

}  // namespace stepcast
