#pragma once

#include <string>
#include <string_view>

#include "report/results/results.hpp"

namespace stepcast {

/// The content of results.csv: a header line and a line per row, quoted as in RFC 4180, with LF line ends.
/// Numbers are the shortest decimal text that reads back to the same bits. Text that would read back as a
/// number, as a boolean or as an empty field is quoted, so that types are preserved. A number that is not
/// finite is an empty field.
std::string to_csv(const Results& results);

/// Reads a CSV file; CRLF line ends are accepted too. An unquoted field is an integer, a number, true or
/// false, or else text. Empty fields are left out of their row.
/// @throws InputError `FILE:LINE:1: expected WHAT, got WHAT`
Results read_csv(std::string_view text, const std::string& file_name);

/// One row as a JSON object without a newline: keys in the row's order, numbers as the shortest decimal text
/// that reads back to the same bits (a whole number of type double keeps its point: `8.0`). Empty cells and
/// numbers that are not finite are null.
std::string to_json_line(const Results& results, const Row& row);

/// The content of results.jsonl: a line per row, with the same cells as results.csv and exact types.
std::string to_json_lines(const Results& results);

/// Adds the rows to a table of the command's JSON object (core/cli/command_line.hpp).
void add_json_rows(const std::string& table, const Results& results);

/// The treatment of a last line that an interruption left incomplete.
enum class TornLine { refuse, drop };

/// Reads a file of JSON lines. Nulls are left out of their row.
/// @throws InputError `FILE:LINE:1: expected a JSON object of text, numbers and true or false`
Results read_json_lines(std::string_view text, const std::string& file_name,
                        TornLine torn = TornLine::refuse);

}  // namespace stepcast
