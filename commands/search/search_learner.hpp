#pragma once

#include <filesystem>
#include <map>
#include <string>

#include "commands/search/search_scenario.hpp"

namespace stepcast {

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
