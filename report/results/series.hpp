#pragma once

#include <string>
#include <vector>

#include "report/results/results.hpp"

namespace stepcast {

/// The columns that distinguish rows of equal `workers`, such as the algorithm. Each combination of their
/// values is one line of a plot. Keys of the sweep come first, then other columns of text or booleans, until
/// no two rows agree in all of them and in `workers`. Columns that only depend on `workers` are left out,
/// except keys of the model: different models are always different lines. Rows that would have no name get
/// the first key that has one value in all of them.
std::vector<std::string> series_columns(const Results& results, const std::vector<std::string>& sweep);

/// The name of a row's series, made of its values in these columns. Words stand alone; numbers (with or
/// without a unit) and booleans follow the last word of their column (`bucket=25 MiB`). Empty cells are left
/// out.
std::string series_name(const Results& results, const Row& row, const std::vector<std::string>& columns);

}  // namespace stepcast
