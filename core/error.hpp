#pragma once

#include <exception>
#include <stdexcept>
#include <string>

namespace stepcast {

/// A mistake in the user's input. The text is one complete line: `FILE:LINE:COL: key.path: expected WHAT, got
/// "TEXT"`. Exit code 2.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A run would need more memory, time or points than allowed, or the machine has no more of something. The
/// text says how much, and what to change. Exit code 3.
struct LimitError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// The user stopped the run (SIGINT, SIGTERM, SIGHUP). Finished results are kept. Exit code 4.
struct Interrupted : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A process of a real run died or hung. Earlier measurements are kept. Exit code 4.
struct RankLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A check or validation finished and its results were written, but they differ from what was expected by
/// more than the tolerance. Exit code 5.
struct OutsideTolerance : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// Exit codes of `stepcast` and `stepcast-gpu`; users' scripts rely on them.
enum class ExitCode {
  done = 0,
  fault = 1,              ///< an error of this program
  bad_input = 2,          ///< InputError, a wrong command line, or no such GPU
  over_limit = 3,         ///< LimitError, or an error of the system that is_shortage
  partial = 4,            ///< Interrupted or RankLost: finished results are kept
  outside_tolerance = 5,  ///< OutsideTolerance
};

/// Whether errno's value `error` says that there is no more memory or disk space, or that there are too many
/// files, processes or threads.
bool is_shortage(int error);

/// One line about an error. Unlike what(), it says what to do when memory or descriptors have run out.
std::string error_text(const std::exception& error);

/// The exit code for an error that reached main().
ExitCode exit_code_of(const std::exception& error);

/// Prints `PROGRAM: what went wrong` to standard error. @return the exit code for main()
int report_failure(const std::string& program, const std::exception& error);

}  // namespace stepcast
