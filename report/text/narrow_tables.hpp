#pragma once

#include <string>

namespace stepcast {

/// The text with tables of at most `width` characters, where possible. A table is a paragraph with three
/// columns at least, which two spaces in all of its lines divide. A wider one becomes several, one below the
/// other, each with the first column. Other lines stay as they are. Width 0: no limit.
std::string with_narrow_tables(const std::string& text, int width);

}  // namespace stepcast
