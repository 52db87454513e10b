#include <fmt/format.h>

#include <stdexcept>
#include <system_error>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/os/process.hpp"
#include "report/plots/style.hpp"
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

/// The big-endian number of four bytes.
std::uint64_t big_endian(const std::string& bytes, std::size_t at) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(bytes[at + i]);
  return value;
}

/// True if the chunks of a PNG file follow each other without a gap up to IEND at the end of the file. Each
/// has its length, its type of four letters, its data and a checksum. Source: ISO/IEC 15948, clause 5.3.
bool is_whole_png(const std::string& bytes) {
  std::size_t at = 8;  // after the signature
  while (at + 12 <= bytes.size()) {
    const std::uint64_t next = at + 12 + big_endian(bytes, at);
    if (bytes.compare(at + 4, 4, "IEND") == 0) return next == bytes.size();
    if (next > bytes.size()) return false;
    at = next;
  }
  return false;
}

bool is_whole_svg(const std::string& text) {
  const auto end = text.find_last_not_of(" \n");
  return end != std::string::npos && text.starts_with("<?xml") &&
         std::string_view(text).substr(0, end + 1).ends_with("</svg>");
}

/// gnuplot ends with success even if the disk had no room for its picture, so the picture tells.
bool is_whole_picture(const fs::path& file) {
  if (!fs::exists(file)) return false;
  const std::string bytes = read_file(file);
  return file.extension() == ".png" ? is_whole_png(bytes) : is_whole_svg(bytes);
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

/// Runs gnuplot on the script that is in the folder; erases from `left` the types that are there.
/// @return a line about pictures that could not be drawn
std::optional<std::string> draw_pictures(const fs::path& folder, const std::string& name,
                                         std::vector<std::string>& left) {
  try {
    const DrawingFolder drawing(folder, name);
    const auto finished = run_child({"gnuplot", "-d", fmt::format("../{}.gp", name)}, drawing.path());
    if (!finished.started) {
      return "gnuplot not found: no plots are drawn (Debian: apt install gnuplot-nox)";
    }
    if (finished.status != 0 && !finished.errors.empty()) {
      return fmt::format("{0}.svg and {0}.png are not drawn: gnuplot: {1}", name, reason_in(finished.errors));
    }
    while (!left.empty()) {
      const std::string file = name + left.front();
      if (!is_whole_picture(drawing.path() / file))
        throw DiskFull(fmt::format("{}: cannot write: gnuplot wrote only a part; the disk is probably full",
                                   (folder / file).string()));
      replace_file(drawing.path() / file, folder / file);
      left.erase(left.begin());
    }
  } catch (const InputError& error) {
    return fmt::format("{0}.svg and {0}.png are not drawn: {1}", name, error.what());
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::no_space_on_device)
      throw DiskFull(fmt::format("{}: cannot draw {}: {}", folder.string(), name, error.code().message()));
    return fmt::format("{0}.svg and {0}.png are not drawn: {1}", name, error.code().message());
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::string> draw_plot(const fs::path& folder, const std::string& name,
                                     const PlotScript& script) {
  if (name.find_first_not_of("abcdefghijklmnopqrstuvwxyz-") != std::string::npos) {
    throw std::invalid_argument("draw_plot: name must be lower-case letters and -");
  }
  std::vector<std::string> left{".gp", ".svg", ".png"};
  try {
    write_atomically(folder / (name + ".gp"), gnuplot_script(name, script));
    left.erase(left.begin());
    return draw_pictures(folder, name, left);
  } catch (const DiskFull&) {
    std::error_code ignored;
    for (const std::string& type : left) fs::remove(folder / (name + type), ignored);
    throw;
  }
}

}  // namespace stepcast
