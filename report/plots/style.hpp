#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace stepcast {

constexpr int kTitleHeight = 50;     ///< of most pictures [px]
constexpr int kAxisNameHeight = 34;  ///< of the name of an axis of bars [px]

/// A rectangle of the picture, in pixels from the picture's lower left corner.
struct PixelBox {
  int left = 0;
  int right = 0;
  int bottom = 0;
  int top = 0;
};

/// Colour `i` as '#RRGGBB', one of seven that remain distinct with any kind of colour blindness; repeats
/// after seven. Source: M. Okabe, K. Ito, "Color Universal Design", 2008, without yellow, which is invisible
/// on white.
const char* series_colour(std::size_t i);

/// The colour of a part of a time, the same in every plot and on the page, whatever other parts there are.
/// What the model does not explain is grey. @param i  place of a part that has no colour of its own
const char* part_colour(std::string_view part, std::size_t i);

/// The dashes of series `i` in pixels, such as "6,3"; empty: a solid line. With its colour, each of 28 series
/// has a look of its own.
const char* series_dashes(std::size_t i);

/// Gnuplot's options for the line of series `i`; lines are dashed from the eighth series on.
std::string series_line(std::size_t i);
/// Gnuplot's options for the points of series `i`.
std::string series_points(std::size_t i);

/// Gnuplot commands that put the axes of the next plot into a box of a picture of `width` x `height` pixels.
std::string panel_commands(const PixelBox& box, int width, int height);

/// Gnuplot command for the title, centred at the top of a picture of `width` x `height` pixels and cut to
/// fit.
std::string title_commands(const std::string& title, int width, int height);

/// Gnuplot commands for a thin grey border left and below, and a grid behind the data.
std::string frame_commands();

/// One entry of a legend: gnuplot's options for its line and for its point (such as `lc rgb '#0072B2' lw 2`;
/// either may be empty), and its name.
struct LegendEntry {
  std::string line = {};
  std::string point = {};
  std::string name = {};
};

/// A centred legend at the lower edge of a picture, row by row in columns. It does not use gnuplot's own
/// legend, because gnuplot estimates the width of text differently for each format.
struct Legend {
  std::vector<LegendEntry> entries = {};
  int width = 0;                      ///< width of the picture [px]
  int height = 0;                     ///< height of the legend [px]
  std::vector<int> column_left = {};  ///< left edges of the columns [px]
};

/// The legend of these entries in a picture of `width` pixels.
Legend laid_out(const std::vector<LegendEntry>& entries, int width);

/// Gnuplot data blocks `$kN` (the line of entry N) and `$mN` (its point), in pixels.
std::string legend_data(const Legend& legend);

/// Gnuplot commands that draw the legend as a separate plot inside a multiplot of the given height [px].
std::string legend_commands(const Legend& legend, int picture_height);

struct Tick {
  double position = 0;
  std::string label = {};
};

/// The range and the ticks of one axis.
struct Axis {
  double low = 0;
  double high = 1;
  std::vector<Tick> ticks = {};
};

/// A logarithmic axis for a count, with ticks at powers of two and as many labels as fit into `pixels`.
Axis power_of_two_axis(double least, double most, int pixels);

/// A logarithmic axis with ticks at 1, 2 and 5 in every decade for up to three decades, otherwise at powers
/// of ten. Labels are such as "200", "5k", "10M".
Axis decimal_log_axis(double least, double most);

/// A linear axis with about `count` steps of 1, 2 or 5 times a power of ten; its lower end is a tick.
Axis linear_axis(double least, double most, int count);

/// The gnuplot commands `set xrange [..]` and `set xtics (..)` for axis 'x' or 'y'.
std::string axis_commands(char name, const Axis& axis);

/// One picture as gnuplot commands. `data` defines data blocks of numbers; `body` draws and is executed once
/// per format.
struct PlotScript {
  int width = 900;   ///< width of the SVG [px]; the PNG has twice the pixels in both directions
  int height = 420;  ///< height of the SVG [px]
  std::string data = {};
  std::string body = {};
};

/// `text` as a single-quoted string of gnuplot, cut to at most `width` code points. All text must enter
/// scripts through this function: gnuplot expands neither back-ticks nor macros nor escapes inside single
/// quotes. A single quote inside becomes a typographic one (gnuplot 5.4 does not understand a doubled one at
/// the start), a control character becomes "?", and a byte that is not valid UTF-8 becomes U+FFFD.
std::string gnuplot_text(std::string_view text, std::size_t width);

/// Writes FOLDER/NAME.gp and runs gnuplot, without a shell, to draw FOLDER/NAME.svg and .png.
/// @param name  lower-case letters and - only; must not come from the user
/// @return a line to print if gnuplot cannot draw the picture, which is no error ("gnuplot not found: ...")
/// @throws InputError if the script cannot be written; DiskFull if there is no room for it or for a picture;
/// files of that name that an earlier call left are then removed, so that no two calls' files are mixed
std::optional<std::string> draw_plot(const std::filesystem::path& folder, const std::string& name,
                                     const PlotScript& script);

}  // namespace stepcast
