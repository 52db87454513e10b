#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace stepcast {

/// One picture as gnuplot commands. `data` defines the data blocks, numbers only; `body` draws and is run
/// once a format.
struct PlotScript {
  int width = 900;   ///< [px] of the SVG; the PNG has twice as many
  int height = 420;  ///< [px]
  std::string data = {};
  std::string body = {};
};

/// `text` as a single-quoted string of gnuplot, at most `width` code points: the only way text enters a
/// script. Gnuplot expands neither back-ticks nor macros nor escapes inside single quotes. A single quote
/// inside becomes a typographic one (gnuplot 5.4 does not understand a doubled one at the start), control
/// characters "?", and bytes that are not UTF-8 U+FFFD.
std::string gnuplot_text(std::string_view text, std::size_t width);

/// The whole script `NAME.gp`: draws NAME.svg and NAME.png into the working folder.
std::string gnuplot_script(const std::string& name, const PlotScript& script);

/// Writes FOLDER/NAME.gp and lets gnuplot draw FOLDER/NAME.svg and .png, without a shell. A picture that
/// cannot be drawn is no error: the line to print is returned instead ("gnuplot not found: ...").
/// @param name  lower-case letters and - only; never from the user
/// @throws InputError where the script cannot be written
std::optional<std::string> draw_plot(const std::filesystem::path& folder, const std::string& name,
                                     const PlotScript& script);

}  // namespace stepcast
