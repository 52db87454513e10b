#pragma once

#include <string>
#include <vector>

#include "campaigns/option_search.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// A key that a search sets: a parameter of the same name, and the text of its values.
struct SearchKey {
  Parameter parameter;
  std::string unit = {};             ///< with a space before, such as " MiB"; may be empty
  std::vector<YamlNode> words = {};  ///< values of a choice, in the order of their indices
};

/// Reads `--over`: KEY=LOW..HIGH[:log], KEY=A|B|C or KEY, separated by commas. A range between two whole
/// numbers without a unit has whole numbers, any other range real ones; both ends have the same unit. A key
/// alone takes its values in the scenario's sweep, or the usual values of that key. If strategy.kind is
/// searched, every other key of `strategy` must be an option of one of the kinds.
/// @throws InputError
std::vector<SearchKey> read_search_keys(const std::string& over, const Scenario& scenario);

Space space_of(const std::vector<SearchKey>& keys);

constexpr const char* kStrategyKind = "strategy.kind";

/// False for the path of an option of `strategy` that strategies of this kind do not have, such as
/// "strategy.period" of "synchronous".
bool has_option(const std::string& kind, const std::string& path);

/// The assignment that the scenario reads; a number is rounded to six digits.
Assignment search_value(const SearchKey& key, double value);
/// The assignments of all keys. If one key is strategy.kind, options that the chosen kind does not have are
/// left out.
std::vector<Assignment> search_values(const std::vector<SearchKey>& keys, const Values& values);

/// The name of a setting, such as "strategy.bucket=3 MiB, strategy.all_reduce=ring".
std::string search_name(const std::vector<SearchKey>& keys, const Values& values);

}  // namespace stepcast
