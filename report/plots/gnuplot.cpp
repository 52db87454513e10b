#include "report/plots/gnuplot.hpp"

#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "core/os/child_process.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

namespace fs = std::filesystem;

/// A temporary folder inside the results, so that incomplete pictures never appear there. The destructor
/// deletes it.
class DrawingFolder {
 public:
  explicit DrawingFolder(const fs::path& parent, const std::string& name)
      : path_(parent / fmt::format(".{}.drawing", name)) {
    fs::create_directories(path_);
  }
  DrawingFolder(const DrawingFolder&) = delete;
  DrawingFolder& operator=(const DrawingFolder&) = delete;
  ~DrawingFolder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }

  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::string terminals(const std::string& name, const PlotScript& script, bool png) {
  const int scale = png ? 2 : 1;
  const auto size = fmt::format("size {},{}", scale * script.width, scale * script.height);
  const auto terminal =
      png ? fmt::format("pngcairo {} background '#ffffff' fontscale 2 linewidth 2 pointscale 3", size)
          : fmt::format("svg {} background '#ffffff' fontscale 1.25", size);
  return fmt::format("reset\nset terminal {} noenhanced font 'DejaVu Sans,11'\nset output '{}.{}'\n",
                     terminal, name, png ? "png" : "svg");
}

/// The message in gnuplot's error output, which repeats the command and a caret before it.
std::string reason_in(const std::string& errors) {
  const auto end = errors.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "no reason given";
  const auto start = errors.rfind('\n', end);
  return without_controls(errors.substr(start + 1, end - start));
}

}  // namespace

std::string gnuplot_text(std::string_view text, std::size_t width) {
  std::string out = "'";
  for (const char c : shortened(without_controls(valid_utf8(text)), width)) {
    if (c == '\'') {
      out += "\u2019";
    } else {
      out += c;
    }
  }
  return out + "'";
}

namespace {

/// The complete script `NAME.gp`, which draws NAME.svg and NAME.png in the working directory.
std::string gnuplot_script(const std::string& name, const PlotScript& script) {
  return fmt::format(
      "# gnuplot {0}.gp draws {0}.svg and {0}.png again.\nset encoding utf8\n{1}\n{2}{4}unset "
      "output\n{3}{4}unset output\n",
      name, script.data, terminals(name, script, false), terminals(name, script, true), script.body);
}

}  // namespace

std::optional<std::string> draw_plot(const fs::path& folder, const std::string& name,
                                     const PlotScript& script) {
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") != std::string::npos) {
    throw std::invalid_argument("draw_plot: name must be lower-case letters and -");
  }
  write_atomically(folder / (name + ".gp"), gnuplot_script(name, script));
  try {
    const DrawingFolder drawing(folder, name);
    const auto finished = run_child({"gnuplot", "-d", fmt::format("../{}.gp", name)}, drawing.path());
    if (!finished.started) {
      return "gnuplot not found: no plots are drawn (Debian: apt install gnuplot-nox)";
    }
    if (finished.status != 0) {
      return fmt::format("{0}.svg and {0}.png are not drawn: gnuplot: {1}", name, reason_in(finished.errors));
    }
    for (const char* type : {".svg", ".png"})
      replace_file(drawing.path() / (name + type), folder / (name + type));
  } catch (const InputError& error) {
    return fmt::format("{0}.svg and {0}.png are not drawn: {1}", name, error.what());
  } catch (const std::system_error& error) {
    return fmt::format("{0}.svg and {0}.png are not drawn: {1}", name, error.code().message());
  }
  return std::nullopt;
}

}  // namespace stepcast
