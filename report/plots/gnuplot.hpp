#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast {

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
