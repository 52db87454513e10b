#pragma once

#include <map>
#include <string>
#include <vector>

#include "commands/search.hpp"
#include "commands/search_space.hpp"
#include "commands/task_progress.hpp"
#include "report/results.hpp"
#include "scenarios/experiment.hpp"

namespace stepcast {

/// What every evaluation of a search shares: a scenario at one point, in the middle of its assumptions,
/// calibrated.
struct SearchedScenario {
  Scenario scenario;
  std::vector<SearchKey> keys;
  std::string point;               ///< values of the point that are not searched; may be empty
  std::vector<Assignment> common;  ///< what the scenario says there
};

/// Builds one experiment, so that what is wrong whatever is chosen is found here.
/// @throws InputError
SearchedScenario read_searched_scenario(const SearchCommand& command, Library& library);

/// A hash of all that the row of a setting depends on.
std::string fingerprint(const SearchedScenario& searched, const Library& library,
                        const SearchCommand& command);

/// Simulates settings in processes of their own, and shows how far the search is.
class SearchSimulator {
 public:
  SearchSimulator(const SearchedScenario& searched, Library& library, const SearchCommand& command);

  /// Rows by the settings' names. One that a scenario refuses has the column `failed`, the reason.
  std::map<std::string, Row> operator()(const std::map<std::string, Values>& open);

  /// The scenario as it is, with nothing chosen.
  Row as_written();
  void clear() { progress_.clear(); }

 private:
  Row simulated(const std::vector<Assignment>& chosen) const;

  const SearchedScenario& searched_;
  Library& library_;
  int processes_;
  TaskProgress progress_;
};

}  // namespace stepcast
