#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/plots/style.hpp"

namespace stepcast {

/// One evaluation of a search.
struct SearchedPoint {
  double value = 0;         ///< of the column that is searched
  double memory_bytes = 0;  ///< of a device; 0: not known
};

struct SearchPlot {
  std::string title = {};
  std::string quantity = {};                              ///< name of the column, with its unit
  bool smallest = false;                                  ///< the search looks for the smallest value
  std::vector<std::optional<SearchedPoint>> points = {};  ///< in order; none for a setting that failed
};

/// The indices of the points of which no other has a better value and no more memory, by memory.
std::vector<std::size_t> memory_front(const SearchPlot& plot);

/// A plot with the values in the order of the evaluations, and the best so far as a line; and, where memory
/// differs, a panel with the values against the memory of a device and their front. Nothing with fewer than
/// two values.
std::optional<PlotScript> search_script(const SearchPlot& plot);

}  // namespace stepcast
