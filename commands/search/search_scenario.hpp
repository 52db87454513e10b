#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "commands/search_space/search_space.hpp"
#include "forecast/forecast.hpp"
#include "forecast/processes/process_pool.hpp"
#include "forecast/resource_limits.hpp"
#include "report/results/results.hpp"
#include "scenarios/experiment/experiment.hpp"

namespace stepcast {

/// The options of `stepcast search`.
struct SearchCommand {
  std::string scenario, over, point, output;
  std::string memory_limit, time_limit;  ///< of one evaluation, see RunLimits
  std::string column;                    ///< column of results.csv that is optimised
  bool smallest = false;                 ///< true: minimise the column; false: maximise it
  std::string method = "bayesian";
  std::vector<std::string> settings;  ///< overrides of the form KEY=VALUE
  int evaluations = 30;
  int draws = 1;       ///< of the assumptions, for each setting
  int at_once = 4;     ///< settings proposed before the first of their results is known; not for evolution
  int population = 0;  ///< of the method evolution; 0: a tenth of the evaluations
  int processes = 0;   ///< 0: one per core
  std::uint64_t seed = 1;
  bool layouts = false;  ///< all layouts of the workers are simulated
  int gpus = 0;          ///< workers of the layouts; 0: those of the scenario
  bool resume = false, dry_run = false;
};

/// The scenario of a search at one point of its sweep, with calibrated keys.
struct SearchedScenario {
  Scenario scenario;
  std::vector<SearchKey> keys;
  std::string point;  ///< name of the point without the searched keys; may be empty
  /// The values of the point that all evaluations share, for each draw of the assumptions. The first draw is
  /// the middle of their ranges.
  std::vector<std::vector<Assignment>> draws;
};

/// Reads the scenario of a search. Builds one experiment, so that errors that affect all settings are found
/// here.
/// @throws InputError
SearchedScenario read_searched_scenario(const SearchCommand& command, Library& library);

/// A hash of all inputs on which the rows of evaluations depend.
std::string fingerprint_of(const SearchedScenario& searched, const Library& library,
                           const SearchCommand& command);

/// All values of a setting in one draw of the assumptions.
std::vector<Assignment> joined(std::vector<Assignment> draw, const std::vector<Assignment>& chosen);

/// The limits of memory and time of each simulation of a search, and the number of processes.
RunLimits limits_of(const SearchCommand& command);

/// Simulates the scenario with these values in this process. The row of an invalid setting, or of one over a
/// limit, has the column `failed` with the reason.
Row simulated_setting(const SearchedScenario& searched, std::vector<Assignment> values, Library& library,
                      const RunLimits& limits);

/// Values of the searched keys, by the settings' names. Those of the unchanged scenario are empty.
using ChosenSettings = std::map<std::string, std::vector<Assignment>>;

/// Simulates settings in child processes and shows the progress of the search.
class SearchSimulator {
 public:
  SearchSimulator(const SearchedScenario& searched, Library& library, const SearchCommand& command);

  /// Simulates settings and returns their rows by name, with the medians over the draws. The row of an
  /// invalid setting has the column `failed` with the reason.
  std::map<std::string, Row> operator()(const std::map<std::string, Values>& settings);

  /// The row of the unchanged scenario.
  Row as_written();
  /// Estimated processor time of one setting, measured by simulating the unchanged scenario.
  Seconds time_of_setting();
  void clear() { progress_.clear(); }

 private:
  std::map<std::string, Row> rows_of(const ChosenSettings& settings);

  const SearchedScenario& searched_;
  Library& library_;
  RunLimits limits_;  ///< limits of memory and time, and the number of processes
  TaskProgress progress_;
};

/// True for a column that trainings have and forecasts have not: loss, accuracy, seconds_to_target,
/// samples_to_target.
bool is_learned_column(const std::string& column);

/// Trains settings as `stepcast learn` does, with all seeds of `learning.seeds`. The columns of a row are the
/// medians over the seeds and the draws.
class SearchLearner {
 public:
  /// @param folder  for checkpoints of warm starts
  /// @throws InputError if the scenario has no `learning`, or no `learning.target_loss` that the column needs
  SearchLearner(const SearchedScenario& searched, const SearchCommand& command, std::filesystem::path folder);

  /// Like SearchSimulator: the row of a setting that cannot be trained has the column `failed` with the
  /// reason.
  std::map<std::string, Row> operator()(const std::map<std::string, Values>& settings);
  /// The row of the unchanged scenario.
  Row as_written();
  /// Estimated processor time of one setting, measured at the first steps of the unchanged scenario.
  Seconds time_of_setting();

 private:
  /// The scenario whose points are the draws of a setting.
  Scenario of_setting(const std::string& name, const std::vector<Assignment>& chosen) const;
  std::map<std::string, Row> rows_of(const ChosenSettings& settings);

  const SearchedScenario& searched_;
  const SearchCommand& command_;
  std::filesystem::path folder_;
};

}  // namespace stepcast
