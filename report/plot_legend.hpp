#pragma once

#include <string>
#include <vector>

namespace stepcast {

/// One entry: gnuplot's options of its line and of its point (`lc rgb '#0072B2' lw 2`; either may be empty),
/// and its name.
struct LegendEntry {
  std::string line = {};
  std::string point = {};
  std::string name = {};
};

/// A legend at the foot of a picture, row by row in columns, centred. Set out by hand, because gnuplot
/// guesses the width of text differently for each format.
struct Legend {
  std::vector<LegendEntry> entries = {};
  int width = 0;                      ///< of the picture [px]
  int height = 0;                     ///< of the legend [px]
  std::vector<int> column_left = {};  ///< [px]
};

Legend laid_out(const std::vector<LegendEntry>& entries, int width);

/// Data blocks `$kN` (the line of entry N) and `$mN` (its point), in pixels.
std::string legend_data(const Legend& legend);

/// Draws it as a plot of its own inside a multiplot of the given height [px].
std::string legend_commands(const Legend& legend, int picture_height);

}  // namespace stepcast
