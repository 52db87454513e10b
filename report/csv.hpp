#pragma once

#include <string>
#include <string_view>

#include "report/results.hpp"

namespace stepcast {

/// results.csv: a header line, then a line a row; quoting of RFC 4180, lines end in LF. Numbers are the
/// shortest decimal text that reads back to the same bits. Text that would read back as a number, as true or
/// false or as nothing is quoted, so that the types survive; a number that is not finite is an empty field.
std::string to_csv(const Results& results);

/// Reads such a file back; CRLF is accepted too. An unquoted field is a count, a number, true or false,
/// nothing when it is empty, or text. Cells that hold nothing are left out of their row.
/// @throws InputError `FILE:LINE:1: expected WHAT, got WHAT`
Results read_csv(std::string_view text, const std::string& file_name);

}  // namespace stepcast
