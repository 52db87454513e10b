#pragma once

#include <string>
#include <string_view>

#include "report/results/results.hpp"

namespace stepcast {

/// One row as a JSON object without a newline: keys in the row's order, numbers as the shortest decimal text
/// that reads back to the same bits (a whole number of type double keeps its point: `8.0`). Empty cells and
/// numbers that are not finite are null.
std::string to_json_line(const Results& results, const Row& row);

/// The content of results.jsonl: a line per row, with the same cells as results.csv and exact types.
std::string to_json_lines(const Results& results);

/// How to treat a last line that an interruption cut off.
enum class TornLine { refuse, drop };

/// Reads a file of JSON lines. Nulls are left out of their row.
/// @throws InputError `FILE:LINE:1: expected a JSON object of text, numbers and true or false`
Results read_json_lines(std::string_view text, const std::string& file_name,
                        TornLine torn = TornLine::refuse);

}  // namespace stepcast
