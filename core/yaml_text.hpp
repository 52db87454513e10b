#pragma once

#include <string>
#include <vector>

namespace stepcast {

/// The text as a YAML scalar in double quotes, which all writers of YAML use. Control characters are escaped,
/// and bytes that are no UTF-8 text replaced.
std::string quoted(const std::string& text);

/// The values as a YAML list with six significant digits, such as "[1.5, 2e-06]".
std::string numbers(const std::vector<double>& values);

}  // namespace stepcast
