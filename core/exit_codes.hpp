#pragma once

#include <exception>
#include <string>

namespace stepcast {

/// Exit codes of `stepcast` and `stepcast-gpu`; users' scripts rely on them.
enum class ExitCode {
  done = 0,
  fault = 1,              ///< an error of this program
  bad_input = 2,          ///< InputError, a wrong command line, or no such GPU
  over_limit = 3,         ///< LimitError
  partial = 4,            ///< Interrupted or RankLost: finished results are kept
  outside_tolerance = 5,  ///< OutsideTolerance
};

/// The exit code for an error that reached main().
ExitCode exit_code_of(const std::exception& error);

/// Prints `PROGRAM: what went wrong` to standard error. @return the exit code for main()
int report_failure(const std::string& program, const std::exception& error);

}  // namespace stepcast
