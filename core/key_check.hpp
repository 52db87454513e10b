#pragma once

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/keys.hpp"

namespace stepcast {

/// The numbers that a key allows, in SI units.
struct NumberRange {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  bool without_low = false, without_high = false;  ///< the end itself is not allowed
};

/// Numbers that `range` of a key allows: "1 to 64", "0 to below 1", ">= 1 B" or "> 0", perhaps beside words.
std::optional<NumberRange> number_range(const Key& key);

/// Words that a key of type `name` allows; empty where any text may stand.
std::vector<std::string> allowed_words(const Key& key);

/// Every key with its path from the top, such as "strategy.bucket". Keys inside lists have no path. Kinds of
/// a mapping may have different keys of one path.
std::vector<std::pair<std::string, Key>> keys_with_paths(const Keys& keys);

/// Whether a mapping has to have all keys whose default is `required`. Those of a scenario may come from its
/// sweep.
enum class Required { all, in_lists };

/// All errors of a mapping by its table of keys, in file order: unknown and missing keys, wrong types,
/// numbers out of range, unknown words. What several keys say together is left to the readers.
std::vector<std::string> key_errors(const YamlValue& value, const Keys& keys, Required required);

}  // namespace stepcast
