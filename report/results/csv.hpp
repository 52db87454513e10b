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

}  // namespace stepcast
