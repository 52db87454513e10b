#pragma once

#include <string>
#include <vector>

#include "report/results.hpp"

namespace stepcast {

/// The columns that tell apart rows of equal `workers`, such as the algorithm: one line of a plot for each
/// combination of their values. Keys of the sweep come first, then other columns of text or yes/no, until no
/// two rows agree in all of them and in `workers`; columns that only follow `workers` are left out, but for
/// keys of the network: another one is always another line. Rows that would be left without a name get the
/// first key that has one value in all of them.
std::vector<std::string> series_columns(const Results& results, const std::vector<std::string>& sweep);

/// The row's values in these columns: words as they are, numbers (with a unit or not) and yes/no with the
/// last word of their column in front (`bucket=25 MiB`); what is empty is left out.
std::string series_name(const Results& results, const Row& row, const std::vector<std::string>& columns);

}  // namespace stepcast
