#include "report/plot_style.hpp"

#include <fmt/format.h>

#include <array>

#include "report/gnuplot.hpp"

namespace stepcast {
namespace {

constexpr int kTitleLetter = 10;    // [px] generous mean width at 13 points
constexpr int kTitleBaseline = 22;  // [px] from the top

double screen(int pixels, int size) {
  return static_cast<double>(pixels) / size;
}

}  // namespace

const char* series_colour(std::size_t i) {
  static constexpr std::array<const char*, 7> kColours{"#0072B2", "#D55E00", "#009E73", "#CC79A7",
                                                       "#E69F00", "#56B4E9", "#000000"};
  return kColours[i % kColours.size()];
}

int series_point(std::size_t i) {
  static constexpr std::array<int, 6> kPoints{7, 5, 9, 13, 11, 15};
  return kPoints[i % kPoints.size()];
}

std::string series_line(std::size_t i) {
  return fmt::format("lc rgb '{}' lw 1.8 dt {}", series_colour(i), 1 + i / 7 % 4);
}

std::string series_points(std::size_t i) {
  return fmt::format("lc rgb '{}' pt {} ps 0.6", series_colour(i), series_point(i));
}

std::string panel_commands(const PixelBox& box, int width, int height) {
  return fmt::format(
      "set lmargin at screen {:.5f}\nset rmargin at screen {:.5f}\nset bmargin at screen {:.5f}\n"
      "set tmargin at screen {:.5f}\n",
      screen(box.left, width), screen(box.right, width), screen(box.bottom, height), screen(box.top, height));
}

std::string title_commands(const std::string& title, int width, int height) {
  return fmt::format("set label 1 {} at screen 0.5, screen {:.5f} center font ',13'\n",
                     gnuplot_text(title, static_cast<std::size_t>(width / kTitleLetter)),
                     screen(height - kTitleBaseline, height));
}

std::string frame_commands() {
  return "set border 3 lc rgb '#404040' lw 0.8\nset tics nomirror out scale 0.6 textcolor rgb '#202020'\n"
         "set style line 100 lt 1 lc rgb '#E0E0E0' lw 0.8 dt solid\nset grid back ls 100\nunset key\n";
}

}  // namespace stepcast
