#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>

#include "core/units.hpp"

namespace stepcast {

enum class ProgressStyle {
  line,   ///< one line written over and over by carriage returns: a terminal
  plain,  ///< a line of its own every 10 s: a log file
};

/// Terminal when standard error is one.
ProgressStyle progress_style();

/// "37 of 110 simulations, 12.3 s, 24.5 s left": how far a run is. The time left assumes that they cost
/// alike.
/// @param what  is counted: "simulations"
std::string progress_text(std::size_t done, std::size_t total, Seconds elapsed, std::string_view what);

/// Decides when to show progress. Silent for the first second; then at most every 0.2 s on a terminal and
/// every 10 s elsewhere. Time is passed in, so that nothing here looks at a clock. Wipes its line at the end,
/// so that an error stands alone.
class Progress {
 public:
  Progress(std::ostream& out, ProgressStyle style) : out_(out), style_(style) {}
  Progress(const Progress&) = delete;
  ~Progress() { clear(); }

  /// Shows the text if it is time to. `elapsed` since the start, never falling.
  void update(const std::string& text, Seconds elapsed);

  /// Wipes the line of a terminal; call before anything else is printed and at the end.
  void clear();

 private:
  std::ostream& out_;
  ProgressStyle style_;
  std::optional<double> shown_at_;  ///< [s]
  std::size_t width_ = 0;           ///< of the line on the terminal
};

}  // namespace stepcast
