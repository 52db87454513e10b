#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "report/plot_legend.hpp"

namespace stepcast {

/// How stacked bars stand side by side in a picture, each with a label below.
struct BarLayout {
  int width = 0;      ///< [px] of the picture
  int left = 0;       ///< [px] of the panel, and
  int right = 0;      ///< [px] its other side
  double pitch = 0;   ///< [px] from bar to bar
  double room = 0.6;  ///< beside the outermost bars, in pitches
  int labels = 24;    ///< [px] height of the labels
  bool slanted = false;
  std::size_t stride = 1;  ///< every so many bars have a label
};

/// Wide enough for the labels, which slant where they would meet.
BarLayout bar_layout(const std::vector<std::string>& labels);

/// Range of the x axis, without ticks.
std::string bar_axis(const BarLayout& layout, std::size_t bars);

/// Labels as text of their own: tick labels would be taken as formats.
std::string bar_labels(const std::vector<std::string>& labels, const BarLayout& layout);

/// Text below the labels, `height` pixels from the foot of a picture of `picture` pixels.
std::string bar_axis_name(const std::string& name, const BarLayout& layout, double height, int picture);

/// Blocks `$bN`: centre, its two sides, bottom and top of part N of each bar; `$t`: centre and sum. Parts
/// that a bar does not have count as 0.
std::string stacked_data(const std::vector<std::vector<double>>& bars, std::size_t parts);

/// Draws them, a colour a part: what follows the first entry of a `plot`.
std::string stacked_boxes(std::size_t parts);

/// The legend of their parts.
std::vector<LegendEntry> part_entries(const std::vector<std::string>& parts);

}  // namespace stepcast
