#include "commands/search.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <functional>
#include <thread>

#include "commands/commands.hpp"
#include "commands/search_results.hpp"
#include "core/error.hpp"
#include "report/atomic_file.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kShown = 15;  // evaluations in the table

SearchOptions how_of(const SearchCommand& command, const Space& space) {
  const auto& names = search_method_names();
  SearchOptions how;
  how.method =
      static_cast<SearchMethod>(std::find(names.begin(), names.end(), command.method) - names.begin());
  how.evaluations = static_cast<int>(std::min<double>(command.evaluations, point_count(space)));
  how.population = command.population;
  how.seed = command.seed;
  return how;
}

TrialOptions trials_of(const SearchCommand& command, const SearchOptions& how,
                       const SearchedScenario& searched) {
  TrialOptions trials;
  trials.column = command.column;
  trials.smallest = command.smallest;
  trials.evaluations = how.evaluations;
  trials.at_once = how.method == SearchMethod::evolution ? population_of(how) : command.at_once;
  trials.name = [&](const Values& values) { return search_name(searched.keys, values); };
  return trials;
}

/// Evaluations of an earlier search of the same scenario, with `--resume`.
std::map<std::string, Row> known_rows(const std::filesystem::path& folder, const std::string& print,
                                      const SearchCommand& command, const SearchedScenario& searched) {
  std::error_code error;
  const auto mark = folder / "search.sha256", file = folder / "search.csv";
  const bool same = std::filesystem::exists(mark, error) && read_file(mark) == print + "\n";
  if (command.resume && same && std::filesystem::exists(file, error)) return read_search_csv(file, searched);
  std::filesystem::remove(file, error);
  write_atomically(mark, print + "\n");
  return {};
}

using Save = std::function<void(const std::vector<Evaluation>&)>;

/// What was simulated is kept when it is interrupted.
std::vector<Evaluation> searched_by(OptionSearch& optimizer, const TrialOptions& options,
                                    std::map<std::string, Row> known, SearchSimulator& simulator,
                                    const Save& save) {
  try {
    return run_trials(optimizer, options, std::move(known), std::ref(simulator), save);
  } catch (const Interrupted&) {
    throw Interrupted("interrupted; go on with --resume");
  }
}

void print_best(const Evaluation& best, const TrialOptions& options, const Row& as_written) {
  const double value = *best.row.number(options.column);
  fmt::print("best: {}: {} = {:.6g}", best.name, options.column, value);
  const auto before = as_written.number(options.column);
  if (before && *before != 0) {
    fmt::print("; the scenario as it is: {:.6g} ({:+.1f} %)", *before, 100 * (value / *before - 1));
  }
  fmt::print("\n");
}

}  // namespace

void search(const SearchCommand& command) {
  Library library;
  const SearchedScenario searched = read_searched_scenario(command, library);
  const Space space = space_of(searched.keys);
  const SearchOptions how = how_of(command, space);
  const TrialOptions options = trials_of(command, how, searched);
  const std::string& name = searched.scenario.name;
  const std::filesystem::path folder =
      command.output.empty() ? "results/" + name + "-search" : command.output;
  check_writable(folder);
  auto known = known_rows(folder, fingerprint(searched, library, command), command, searched);

  SearchSimulator simulator(searched, library, command);
  const Row as_written = simulator.as_written();
  const auto optimizer = make_optimizer(space, how);
  const Save save = [&](const std::vector<Evaluation>& so_far) {
    write_atomically(folder / "search.csv", search_csv(searched, so_far));
  };
  const auto evaluations = searched_by(*optimizer, options, std::move(known), simulator, save);
  simulator.clear();
  const Evaluation& best = best_of(evaluations, options);
  fmt::print("{}{}{}: {} evaluations ({})\n{}", name, searched.point.empty() ? "" : " at ", searched.point,
             evaluations.size(), command.method,
             to_string(search_table(searched, evaluations, options, kShown)));
  print_best(best, options, as_written);
  if (static_cast<double>(evaluations.size()) < std::min<double>(command.evaluations, point_count(space)))
    fmt::print(
        "{} of {} evaluations: nothing new was proposed any more; another --by, --seed or --population may\n",
        evaluations.size(), command.evaluations);
  fmt::print("written: {}\n", (folder / "search.csv").string());
}

void add_search(CLI::App& app) {
  auto* command =
      app.add_subcommand("search", "Find the best options of a scenario by simulating few of them");
  auto options = std::make_shared<SearchCommand>();
  auto minimise = std::make_shared<std::string>();
  command->add_option("scenario", options->scenario, "scenario file")->required()->type_name("SCENARIO.yaml");
  auto* goal = command->add_option_group("goal");
  goal->add_option("--maximise", options->column, "column of results.csv to make large")->type_name("COLUMN");
  goal->add_option("--minimise", *minimise, "column of results.csv to make small")->type_name("COLUMN");
  goal->require_option(1);
  command
      ->add_option("--over", options->over,
                   "keys to choose, by commas: KEY=LOW..HIGH, KEY=LOW..HIGH:log, KEY=A|B|C, or KEY")
      ->required()
      ->type_name("KEYS");
  command->add_option("--by", options->method, "how the next settings are chosen")
      ->check(CLI::IsMember(search_method_names()))
      ->capture_default_str();
  command->add_option("--evaluations", options->evaluations, "different settings to simulate")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  command->add_option("--at-once", options->at_once, "settings chosen before the first of them is known")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command
      ->add_option("--population", options->population,
                   "of an evolution (default: a tenth of the evaluations)")
      ->check(CLI::Range(3, 10000));
  command->add_option("--point", options->point,
                      "point of the scenario's sweep to search at (default: the last)");
  command->add_option("--seed", options->seed, "of the search")->capture_default_str();
  command
      ->add_option("-o,--output", options->output,
                   "folder for search.csv (default results/SCENARIO-NAME-search)")
      ->type_name("DIR");
  command->add_option("-j,--jobs", options->processes, "simulations at once (default: cores)")
      ->check(CLI::Range(1, 4096));
  command->add_option("--set", options->settings, "replace a value of the scenario first")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  command->add_flag("--resume", options->resume, "do not simulate again what an interrupted search did");
  command->callback([options, minimise] {
    options->smallest = !minimise->empty();
    if (options->smallest) options->column = *minimise;
    if (options->processes == 0)
      options->processes = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
    search(*options);
  });
  command->footer(
      "Example: stepcast search scenarios/quickstart.yaml --maximise samples_per_second "
      "--over 'strategy.bucket=1 MiB..100 MiB:log,strategy.all_reduce'");
}

}  // namespace stepcast
