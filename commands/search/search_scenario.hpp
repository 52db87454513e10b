#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "commands/search_space.hpp"
#include "forecast/forecast.hpp"
#include "forecast/processes/process_pool.hpp"
#include "report/results/results.hpp"
#include "scenarios/experiment/experiment.hpp"

namespace stepcast {

/// The options of `stepcast search`.
struct SearchCommand {
  std::string scenario, over, point, output;
  std::string memory_limit, time_limit;  ///< of one evaluation, see RunOptions
  std::string column;                    ///< column of results.csv that is optimised
  bool smallest = false;                 ///< true: minimise the column; false: maximise it
  std::string method = "bayesian";
  std::vector<std::string> settings;  ///< overrides of the form KEY=VALUE
  int evaluations = 30;
  int at_once = 4;     ///< settings proposed before the first of their results is known; not for evolution
  int population = 0;  ///< of the method evolution; 0: a tenth of the evaluations
  int processes = 0;   ///< 0: one per core
  std::uint64_t seed = 1;
  bool resume = false;
};

/// The scenario of a search at one point of its sweep, with the assumptions in the middle of their ranges and
/// calibrated keys.
struct SearchedScenario {
  Scenario scenario;
  std::vector<SearchKey> keys;
  std::string point;               ///< name of the point without the searched keys; may be empty
  std::vector<Assignment> common;  ///< values of the point that all evaluations share
};

/// Reads the scenario of a search. Builds one experiment, so that errors that affect all settings are found
/// here.
/// @throws InputError
SearchedScenario read_searched_scenario(const SearchCommand& command, Library& library);

/// A hash of all inputs on which the rows of evaluations depend.
std::string fingerprint_of(const SearchedScenario& searched, const Library& library,
                           const SearchCommand& command);

/// Simulates settings in child processes and shows the progress of the search.
class SearchSimulator {
 public:
  SearchSimulator(const SearchedScenario& searched, Library& library, const SearchCommand& command);

  /// Simulates settings and returns their rows by name. The row of an invalid setting has the column `failed`
  /// with the reason.
  std::map<std::string, Row> operator()(const std::map<std::string, Values>& settings);

  /// The row of the unchanged scenario.
  Row as_written();
  void clear() { progress_.clear(); }

 private:
  Row simulated(const std::vector<Assignment>& chosen) const;

  const SearchedScenario& searched_;
  Library& library_;
  RunOptions limits_;  ///< limits of memory and time, and the number of processes
  TaskProgress progress_;
};

/// True for a column that trainings have and forecasts have not: loss, accuracy, seconds_to_target,
/// samples_to_target.
bool is_learned_column(const std::string& column);

/// Trains settings as `stepcast learn` does, with all seeds of `learning.seeds`. The columns of a row are the
/// medians over the seeds.
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

 private:
  std::map<std::string, Row> learned(const std::vector<Point>& points);

  const SearchedScenario& searched_;
  const SearchCommand& command_;
  std::filesystem::path folder_;
};

}  // namespace stepcast
