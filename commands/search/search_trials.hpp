#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "campaigns/option_search.hpp"
#include "commands/search/search_scenario.hpp"
#include "report/results/results.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {

/// Simulates settings, given by name, and returns their rows by name. The row of an invalid setting has the
/// column `failed` with the reason.
using Simulate = std::function<std::map<std::string, Row>(const std::map<std::string, Values>& settings)>;

struct TrialOptions {
  std::string column;     ///< column that is optimised
  bool smallest = false;  ///< true: minimise the column; false: maximise it
  int evaluations = 30;   ///< number of different settings to simulate
  int at_once = 4;        ///< proposals of a round; a whole generation for evolution
  /// Name of a setting; settings of equal name are simulated once.
  std::function<std::string(const Values&)> name;
};

/// A simulated setting.
struct Evaluation {
  std::string name;
  Values values;
  Row row;
};

/// The figure that the search maximises; NaN for a setting that is invalid or does not fit into memory.
double merit(const Row& row, const TrialOptions& options);

/// Asks the optimizer for settings, simulates them and tells it their merit, until `evaluations` different
/// settings are evaluated or the optimizer proposes no new ones. Settings in `known` are not simulated again.
/// `done` is called after every round with a new evaluation. The result is in the order of the proposals.
std::vector<Evaluation> run_trials(OptionSearch& optimizer, const TrialOptions& options,
                                   std::map<std::string, Row> known, const Simulate& simulate,
                                   const std::function<void(const std::vector<Evaluation>&)>& done);

/// Refuses a column that the row of the unchanged scenario lacks, before anything else is simulated, unless
/// other words of a key may add it. @throws InputError
void check_column(const Row& as_written, const SearchedScenario& searched, const TrialOptions& options);

/// The content of search.csv: a row per evaluation, in the order in which the optimizer proposed them.
/// Columns: `evaluation`, `point` (its name), a column per searched key, then the columns of results.csv, or
/// `failed`.
std::string search_csv(const SearchedScenario& searched, const std::vector<Evaluation>& evaluations);

/// The rows of a search.csv by the evaluations' names, without the columns that search_csv adds.
std::map<std::string, Row> read_search_csv(const std::filesystem::path& file,
                                           const SearchedScenario& searched);

/// The best evaluations, at most `rows`, the best first; failed ones last.
Table search_table(const SearchedScenario& searched, const std::vector<Evaluation>& evaluations,
                   const TrialOptions& options, std::size_t rows);

/// The best evaluation. @throws InputError if all evaluations failed, or none has the column
const Evaluation& best_of(const std::vector<Evaluation>& evaluations, const TrialOptions& options);

}  // namespace stepcast
