
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

#include "campaigns/search_method.hpp"
#include "commands/commands.hpp"
#include "commands/fingerprint.hpp"
#include "commands/scenario_options.hpp"
#include "commands/search/best_probabilities.hpp"
#include "commands/search/search_layouts.hpp"
#include "commands/search/search_scenario.hpp"
#include "commands/search/search_trials.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/folders.hpp"
#include "forecast/discrepancy.hpp"
#include "forecast/resource_limits.hpp"
#include "report/plots/search_plot.hpp"
#include "report/results/results.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kShownEvaluations = 15;

SearchOptions search_options_of(const SearchCommand& command, const Space& space) {
  SearchOptions method_options;
  method_options.method = *search_method_words().find(command.method);
  method_options.evaluations = static_cast<int>(std::min<double>(command.evaluations, point_count(space)));
  method_options.population = command.population;
  method_options.seed = command.seed;
  return method_options;
}

TrialOptions trial_options_of(const SearchCommand& command, const SearchOptions& method_options,
                              const SearchedScenario& searched) {
  TrialOptions trials;
  trials.column = command.column;
  trials.smallest = command.smallest;
  trials.evaluations = method_options.evaluations;
  trials.at_once =
      method_options.method == SearchMethod::evolution ? population_of(method_options) : command.at_once;
  trials.name = [&](const Values& values) { return search_name(searched.keys, values); };
  return trials;
}

/// The evaluations of an earlier search with the same inputs, if `--resume` is given; otherwise deletes them.
/// Refused settings are tried again, because limits of memory and time may have been others.
std::map<std::string, Row> known_rows(const std::filesystem::path& folder, const std::string& fingerprint,
                                      const SearchCommand& command, const SearchedScenario& searched) {
  const auto fingerprint_file = folder / "search.sha256", file = folder / "search.csv";
  std::error_code error;
  if (may_resume(fingerprint_file, fingerprint, command.resume) && std::filesystem::exists(file, error)) {
    std::map<std::string, Row> known = read_search_csv(file, searched);
    std::erase_if(known, [](const auto& one) { return !one.second.text("failed").empty(); });
    return known;
  }
  std::filesystem::remove(file, error);
  write_fingerprint(fingerprint_file, fingerprint);
  return {};
}

using Save = std::function<void(const std::vector<Evaluation>&)>;

/// The settings that may be the best, with the one that the scenario has; those with a column above 0 are
/// compared.
void print_equal(const std::vector<Evaluation>& evaluations, const TrialOptions& options,
                 const Row& as_written, Library& library) {
  std::vector<std::string> names;
  std::vector<std::vector<double>> merits;
  const auto add = [&](const std::string& name, const Row& row) {
    const double value = merit(row, options);
    if (value == 0 || !std::isfinite(value) || options.smallest == (value > 0)) return;
    names.push_back(name);
    merits.push_back({options.smallest ? -1 / value : value});
  };
  add("the unchanged scenario", as_written);
  for (const Evaluation& one : evaluations) add(one.name, one.row);
  if (names.size() < 2) return;
  const double own = shipped_discrepancy(library).measured.own;
  fmt::print("{}\n", told_apart_line(names, best_probabilities(merits, own)));
}

void print_best(const Evaluation& best, const TrialOptions& options, const Row& as_written) {
  const double value = *best.row.number(options.column);
  fmt::print("best: {}: {} = {:.6g}", best.name, options.column, value);
  const auto before = as_written.number(options.column);
  if (before && *before != 0) {
    fmt::print("; the unchanged scenario: {:.6g} ({:+.1f} %)", *before, 100 * (value / *before - 1));
  }
  fmt::print("\n");
  if (!is_learned_column(options.column))
    fmt::print("These values are simulated without the discrepancy term.\n");
}

/// Prints the estimated size of a search, for --dry-run.
void print_size(const SearchCommand& command, const SearchedScenario& searched, int evaluations,
                Library& library) {
  const double settings = 1 + evaluations;  // with the unchanged scenario
  const Seconds each = is_learned_column(command.column)
                           ? SearchLearner(searched, command, {}).time_of_setting()
                           : SearchSimulator(searched, library, command).time_of_setting();
  fmt::print("{}: at most {} settings, {}\n", searched.scenario.name, settings,
             time_text(settings * each, command.processes));
}

/// Draws the progress of a search and, for columns that are simulated, the front of the best with the memory.
void draw_search(const std::filesystem::path& folder, const std::string& title,
                 const std::vector<Evaluation>& evaluations, const TrialOptions& options) {
  SearchPlot plot{title, options.column, options.smallest, {}};
  for (const Evaluation& one : evaluations) {
    plot.points.emplace_back();
    if (std::isfinite(merit(one.row, options)))
      plot.points.back() = {one.row.number(options.column).value_or(0),
                            one.row.number("memory_bytes").value_or(0)};
  }
  if (const auto script = search_script(plot)) {
    if (const auto problem = draw_plot(folder, "search", *script)) fmt::print("{}\n", *problem);
  }
}

void search(const SearchCommand& command) {
  Library library;
  const SearchedScenario searched = read_searched_scenario(command, library);
  if (command.layouts) return search_layouts(command, searched, library);
  const Space space = space_of(searched.keys);
  const SearchOptions method_options = search_options_of(command, space);
  if (command.dry_run) return print_size(command, searched, method_options.evaluations, library);
  const TrialOptions options = trial_options_of(command, method_options, searched);
  const std::string& name = searched.scenario.name;
  SearchSimulator simulator(searched, library, command);
  Row as_written;
  if (!is_learned_column(command.column)) {
    as_written = simulator.as_written();
    check_column(as_written, searched, options);
  }
  const std::filesystem::path folder = results_folder(command.output, name + "-search");
  check_writable(folder);
  const FolderLock lock(folder);
  auto known = known_rows(folder, fingerprint_of(searched, library, command), command, searched);

  std::optional<SearchLearner> learner;
  if (is_learned_column(command.column)) as_written = learner.emplace(searched, command, folder).as_written();
  const Simulate simulate = learner ? Simulate(std::ref(*learner)) : Simulate(std::ref(simulator));
  const auto optimizer = make_optimizer(space, method_options);
  const Save save = [&](const std::vector<Evaluation>& so_far) {
    write_atomically(folder / "search.csv", search_csv(searched, so_far));
  };
  const auto evaluations = resumable("finished evaluations are kept", [&] {
    return run_trials(*optimizer, options, std::move(known), simulate, save);
  });
  simulator.clear();
  const Evaluation& best = best_of(evaluations, options);
  fmt::print("{}{}{}: {} evaluations ({})\n{}", name, searched.point.empty() ? "" : " at ", searched.point,
             evaluations.size(), command.method,
             to_string(search_table(searched, evaluations, options, kShownEvaluations), terminal_width()));
  print_best(best, options, as_written);
  if (!learner) print_equal(evaluations, options, as_written, library);
  if (evaluations.size() < std::min<double>(command.evaluations, point_count(space)))
    fmt::print(
        "{} of {} evaluations: the method proposes no new settings; try another --by, --seed or "
        "--population\n",
        evaluations.size(), command.evaluations);
  add_json_rows("evaluations", read_csv(search_csv(searched, evaluations), "search.csv"));
  draw_search(folder, name, evaluations, options);
  fmt::print("written: {}\n", (folder / "search.csv").string());
}

Option add_layouts(const Command& command, SearchCommand& options) {
  Option layouts =
      command.add_flag("--layouts", options.layouts,
                       "Simulate all layouts of the workers that fit into memory: pipeline, tensor and data "
                       "parallelism, ZeRO, micro-batches and recomputation.");
  command.add_option("--gpus", options.gpus, "With --layouts: number of workers. Default: the scenario's.")
      .range(1, 10'000'000);
  return layouts;
}

void add_method(const Command& command, const Option& layouts, SearchCommand& options) {
  command
      .add_option(
          "--over", options.over,
          "Keys whose values the search chooses, separated by commas: KEY=LOW..HIGH, KEY=LOW..HIGH:log (log "
          "scale), KEY=A|B|C, or KEY alone for the values of the sweep or usual values. This option or "
          "--layouts is required.")
      .type_name("KEYS")
      .excludes(layouts);
  command.add_option("--by", options.method, "Method that chooses the next settings.")
      .one_of(search_method_words().names())
      .show_default()
      .excludes(layouts);
  command.add_option("--evaluations", options.evaluations, "Number of different settings to simulate.")
      .range(1, 100000)
      .show_default()
      .excludes(layouts);
  command
      .add_option("--at-once", options.at_once,
                  "Number of settings that are chosen before the result of the first is known. The method "
                  "evolution uses the population instead; direct chooses one setting at a time.")
      .range(1, 1000)
      .show_default()
      .excludes(layouts);
  command
      .add_option(
          "--population", options.population,
          "Number of settings of a generation, for --by evolution. Default: a tenth of the evaluations.")
      .range(3, 10000)
      .excludes(layouts);
  command
      .add_option("--point", options.point,
                  "Point of the scenario's sweep at which to search. Default: the last point.")
      .type_name("NAME");
  command.add_option("--seed", options.seed, "Seed of the search's random numbers.")
      .show_default()
      .excludes(layouts);
}

void add_run_of_search(const Command& command, const Option& layouts, SearchCommand& options) {
  add_results_folder(command, options.output,
                     "Folder for search.csv. Default: results/SCENARIO-NAME-search.");
  add_jobs(command, options.processes, "simulations");
  add_settings(command, options.settings);
  command
      .add_option(
          "--draws", options.draws,
          "Number of draws of the assumptions for each setting; the medians over the draws count. With "
          "1, all assumptions are in the middle of their ranges.")
      .range(1, 100000)
      .show_default();
  add_memory_limit(command, options.memory_limit, "A setting fails");
  add_time_limit(command, options.time_limit, "A setting fails if its simulation");
  command
      .add_flag("--resume", options.resume,
                "Continue an interrupted search. Its evaluations are used if the inputs and settings are the "
                "same.")
      .excludes(layouts);
  command.add_flag(
      "--dry-run", options.dry_run,
      "Print the number of settings and the time that they need, measured with the unchanged scenario. Write "
      "no results.");
}

}  // namespace

void add_search(Command app) {
  const Command command =
      app.add_subcommand("search", "Find good options of a scenario by simulating only some of them.");
  auto options = std::make_shared<SearchCommand>();
  auto minimise = std::make_shared<std::string>();
  command.add_option("scenario", options->scenario, "Scenario file, or a name in scenarios/.")
      .required()
      .transform(scenario_file)
      .type_name("SCENARIO.yaml");
  const Option layouts = add_layouts(command, *options);
  const Option maximise = command
                              .add_option("--maximise,--maximize", options->column,
                                          "Column of results.csv to maximise, or accuracy: the settings are "
                                          "then trained as by learn. This "
                                          "option or --minimise is required.")
                              .type_name("COLUMN");
  command
      .add_option("--minimise,--minimize", *minimise,
                  "Column of results.csv to minimise, or loss, seconds_to_target or samples_to_target: the "
                  "settings are then trained as by learn.")
      .type_name("COLUMN")
      .excludes(maximise)
      .excludes(layouts);
  add_method(command, layouts, *options);
  add_run_of_search(command, layouts, *options);
  command.callback(
      [options, minimise] {
        options->smallest = !minimise->empty();
        if (options->smallest) options->column = *minimise;
        if (!options->layouts && options->gpus > 0) throw InputError("search: --gpus needs --layouts");
        if (!options->layouts && options->over.empty())
          throw InputError("search: --over KEYS or --layouts is required");
        if (!options->layouts && options->column.empty())
          throw InputError("search: --maximise COLUMN or --minimise COLUMN is required");
        options->processes = jobs_or_cores(options->processes);
        search(*options);
      },
      Command::Json::yes);
  command.footer(
      "Example: stepcast search scenarios/quickstart.yaml --maximise samples_per_second "
      "--over 'strategy.bucket=1 MiB..100 MiB:log,strategy.all_reduce'");
}

}  // namespace stepcast
