#include "core/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <new>
#include <stdexcept>
#include <system_error>

#include "core/expects.hpp"

namespace stepcast {
namespace {

template <class Error>
bool is(const std::exception& error) {
  return dynamic_cast<const Error*>(&error) != nullptr;
}

/// errno's value of an error of the system; 0 for other errors.
int errno_of(const std::exception& error) {
  if (is<std::bad_alloc>(error)) return ENOMEM;
  const auto* of_system = dynamic_cast<const std::system_error*>(&error);
  return of_system == nullptr ? 0 : of_system->code().value();
}

}  // namespace

bool is_shortage(int error) {
  return error == ENOMEM || error == ENOSPC || error == EDQUOT || error == EMFILE || error == ENFILE ||
         error == EAGAIN;
}

std::string error_text(const std::exception& error) {
  const int number = errno_of(error);
  if (is<std::bad_alloc>(error)) return "out of memory; use fewer processes (-j) or a machine with more";
  if (number == EMFILE) return fmt::format("{}; raise the limit (ulimit -n)", error.what());
  return error.what();
}

ExitCode exit_code_of(const std::exception& error) {
  if (is<InputError>(error)) return ExitCode::bad_input;
  if (is<LimitError>(error) || is_shortage(errno_of(error))) return ExitCode::over_limit;
  if (is<Interrupted>(error) || is<RankLost>(error)) return ExitCode::partial;
  if (is<OutsideTolerance>(error)) return ExitCode::outside_tolerance;
  return ExitCode::fault;
}

int report_failure(const std::string& program, const std::exception& error) {
  // Names in users' files may hold anything: an error stays one line and moves no cursor.
  std::string line = error_text(error);
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
  }
  const char* const begin = is<Interrupted>(error) ? "\n" : "";                 // ends a line of progress
  std::fputs(fmt::format("{}{}: {}\n", begin, program, line).c_str(), stderr);  // fmt::print may throw
  return static_cast<int>(exit_code_of(error));
}

void refuse_caller(const char* what, const char* file, int line) {
  throw std::logic_error(fmt::format("{}:{}: expected of the caller: {}", file, line, what));
}

}  // namespace stepcast
