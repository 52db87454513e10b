#pragma once

#include <cstddef>
#include <iosfwd>
#include <optional>
#include <string>

#include "core/units.hpp"

namespace stepcast {

enum class ProgressStyle {
  line,   ///< one line written over and over by carriage returns: a terminal
  plain,  ///< a line of its own every 10 s: a log file
};

/// Terminal when standard error is one.
ProgressStyle progress_style();

/// "37 of 110 points, 12.3 s, 24.5 s left": how far a run is. The time left assumes that points cost alike.
std::string progress_text(std::size_t done, std::size_t total, Seconds elapsed);

/// Decides when to show progress. Silent for the first second; then at most every 0.2 s on a terminal and
/// every 10 s elsewhere. Time is passed in, so that nothing here looks at a clock.
class Progress {
 public:
  Progress(std::ostream& out, ProgressStyle style, std::size_t total)
      : out_(out), style_(style), total_(total) {}

  /// `elapsed` since the start, never falling.
  void update(std::size_t done, Seconds elapsed);

  /// Wipes the line of a terminal; call before anything else is printed and at the end.
  void clear();

 private:
  std::ostream& out_;
  ProgressStyle style_;
  std::size_t total_;
  std::optional<double> shown_at_;  ///< [s]
  std::size_t width_ = 0;           ///< of the line on the terminal
};

}  // namespace stepcast
