#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "commands/search/search_scenario.hpp"
#include "commands/search/search_trials.hpp"
#include "report/text/text_table.hpp"

namespace stepcast {

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
