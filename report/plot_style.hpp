#pragma once

#include <string>
#include <vector>

namespace stepcast {

/// A rectangle of the picture in pixels from its lower left corner.
struct PixelBox {
  int left = 0;
  int right = 0;
  int bottom = 0;
  int top = 0;
};

/// Colour `i` of seven that people with any kind of colour blindness tell apart, as '#RRGGBB'; repeats after
/// seven. Source: M. Okabe, K. Ito, "Color Universal Design", 2008; yellow left out, as it vanishes on white.
const char* series_colour(std::size_t i);

/// Filled point type `i` of gnuplot: circle, square, triangle, diamond, inverted triangle, pentagon.
int series_point(std::size_t i);

/// Options of the line and of the points of series `i`; dashes from the eighth on.
std::string series_line(std::size_t i);
std::string series_points(std::size_t i);

/// Puts the axes of the next plot into a box of a picture of `width` x `height` pixels.
std::string panel_commands(const PixelBox& box, int width, int height);

/// The title, centred at the top of a picture of `width` x `height` pixels and cut to fit.
std::string title_commands(const std::string& title, int width, int height);

/// Thin grey border left and below, grid behind the data.
std::string frame_commands();

}  // namespace stepcast
