#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/plots/style.hpp"

namespace stepcast {

/// Labels of bars that are longer lose the words that all have, and are cut in the middle if that is not
/// enough.
constexpr std::size_t kLongestLabel = 48;  // [characters]

/// The layout of stacked bars side by side in a picture, each with a label below.
struct BarLayout {
  int width = 0;           ///< width of the picture [px]
  int left = 0;            ///< left edge of the panel [px]
  int right = 0;           ///< right edge of the panel [px]
  double pitch = 0;        ///< distance between the centres of neighbouring bars [px]
  double margin = 0.6;     ///< space beside the outermost bars, in pitches
  int labels = 24;         ///< height of the labels [px]
  bool slanted = false;    ///< labels are slanted
  std::size_t stride = 1;  ///< every stride-th bar has a label
};

/// The layout for bars with these labels, which are slanted if they would overlap.
BarLayout bar_layout(const std::vector<std::string>& labels);

/// Gnuplot commands for the range of the x axis, without ticks.
std::string bar_axis(const BarLayout& layout, std::size_t bars);

/// Gnuplot commands for the labels of bars. They are text labels, because gnuplot treats tick labels as
/// formats.
std::string bar_labels(const std::vector<std::string>& labels, const BarLayout& layout);

/// Gnuplot command for the name of the axis, below the labels.
/// @param height   distance from the lower edge of the picture [px]
/// @param picture  height of the picture [px]
std::string bar_axis_name(const std::string& name, const BarLayout& layout, double height, int picture);

/// Gnuplot data blocks. `$bN`: centre, left and right side, bottom and top of part N of each bar; `$t`:
/// centre and sum of each bar. Missing parts of a bar count as 0.
std::string stacked_data(const std::vector<std::vector<double>>& bars, std::size_t parts);

/// The entries of a gnuplot `plot` command that draw the blocks of stacked_data, a colour per part. They
/// follow the command's first entry.
std::string stacked_boxes(const std::vector<std::string>& parts);

/// The legend entries of the parts.
std::vector<LegendEntry> part_entries(const std::vector<std::string>& parts);

/// One point of the sweep.
struct BreakdownBar {
  std::string label = {};            ///< such as "256" or "ring, 256"
  std::vector<double> seconds = {};  ///< by part; missing ones count as 0
};

struct BreakdownPlot {
  std::string title = {};
  std::string label_name = "workers";  ///< name of the axis of labels
  /// Names from the bottom up, such as "compute", "exposed communication".
  std::vector<std::string> parts = {};
  std::vector<BreakdownBar> bars = {};
  std::string quantity = "median step";  ///< name of the sum of the parts
};

/// A plot with one stacked bar per point, which shows the parts of its time in h, s, ms or us. Nothing
/// without bars or parts.
std::optional<PlotScript> breakdown_script(const BreakdownPlot& plot);

}  // namespace stepcast
