#pragma once

#include <string>
#include <string_view>

#include "report/results.hpp"

namespace stepcast {

/// One row as one JSON object without a newline: keys in the row's order, numbers as the shortest decimal
/// text that reads back to the same bits (a whole number of type double keeps its point: `8.0`), nothing and
/// not finite as null.
std::string to_json_line(const Results& results, const Row& row);

/// results.jsonl: a line a row. Holds what results.csv holds, with the types kept exactly.
std::string to_json_lines(const Results& results);

/// What to do with a last line that was cut off by an interruption.
enum class TornLine { refuse, drop };

/// Reads such a file back. Nulls are left out of their row.
/// @throws InputError `FILE:LINE:1: expected a JSON object of text, numbers and true or false`
Results read_json_lines(std::string_view text, const std::string& file_name,
                        TornLine torn = TornLine::refuse);

}  // namespace stepcast
