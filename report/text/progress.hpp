#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "core/typed_numbers.hpp"

namespace stepcast {

enum class ProgressStyle {
  line,   ///< one line that is overwritten, for a terminal
  plain,  ///< a new line every 10 s, for a log file
  none,   ///< nothing
};

/// ProgressStyle::none with -q, ProgressStyle::line if standard error is a terminal, otherwise
/// ProgressStyle::plain.
ProgressStyle progress_style();

/// Progress text such as "37 of 110 simulations, 12.3 s, 24.5 s left". The remaining time assumes equal cost
/// per item.
/// @param what  plural noun for the items, such as "simulations"
std::string progress_text(std::size_t done, std::size_t total, Seconds elapsed, std::string_view what);

/// Shows progress at limited rates: on a terminal after the first second, then at most every 0.2 s; elsewhere
/// every 10 s. The caller passes the time, so that tests need no clock. The destructor erases the terminal's
/// line, so that an error message stands alone.
class Progress {
 public:
  Progress(std::ostream& out, ProgressStyle style) : out_(out), style_(style) {}
  Progress(const Progress&) = delete;
  ~Progress() { clear(); }

  /// Shows the text if the next update is due. @param elapsed  time since the start; must not decrease
  void update(const std::string& text, Seconds elapsed);

  /// Erases the line on a terminal; call it before printing anything else.
  void clear();

 private:
  std::ostream& out_;
  ProgressStyle style_;
  std::optional<double> shown_at_;  ///< [s]
  std::size_t width_ = 0;           ///< width of the line on the terminal
};

}  // namespace stepcast
