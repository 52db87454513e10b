#include "report/text/progress.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "core/cli/command_line.hpp"
#include "report/text/display_text.hpp"

namespace stepcast {
namespace {

constexpr double kFirstUpdate = 1;         // [s] on a terminal; shorter runs show no progress
constexpr double kTerminalInterval = 0.2;  // [s]
constexpr double kLogInterval = 10;        // [s]

}  // namespace

ProgressStyle progress_style() {
  if (output_is_quiet()) return ProgressStyle::none;
  return ::isatty(STDERR_FILENO) != 0 ? ProgressStyle::line : ProgressStyle::plain;
}

std::string progress_text(std::size_t done, std::size_t total, Seconds elapsed, std::string_view what) {
  auto text = fmt::format("{} of {} {}, {}", done, total, what, human(elapsed));
  if (done > 0 && done < total) {
    const double each = elapsed.value / done;
    text += fmt::format(", {} left", human(Seconds{each * (total - done)}));
  }
  return text;
}

void Progress::update(const std::string& text, Seconds elapsed) {
  if (style_ == ProgressStyle::none) return;
  const bool terminal = style_ == ProgressStyle::line;
  const double interval = terminal ? kTerminalInterval : kLogInterval;
  const double due = shown_at_ ? *shown_at_ + interval : (terminal ? kFirstUpdate : kLogInterval);
  if (elapsed.value < due) return;
  shown_at_ = elapsed.value;
  if (terminal) {
    out_ << '\r' << text << std::string(width_ > text.size() ? width_ - text.size() : 0, ' ') << std::flush;
    width_ = std::max(width_, text.size());
  } else {
    out_ << text << '\n' << std::flush;
  }
}

void Progress::clear() {
  if (width_ > 0) out_ << '\r' << std::string(width_, ' ') << '\r' << std::flush;
  width_ = 0;
}

}  // namespace stepcast
