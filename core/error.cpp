#include "core/error.hpp"

#include <fmt/format.h>

#include <cstdio>

namespace stepcast {
namespace {

template <class Error>
bool is(const std::exception& error) {
  return dynamic_cast<const Error*>(&error) != nullptr;
}

}  // namespace

ExitCode exit_code_of(const std::exception& error) {
  if (is<InputError>(error)) return ExitCode::bad_input;
  if (is<LimitError>(error)) return ExitCode::over_limit;
  if (is<Interrupted>(error) || is<RankLost>(error)) return ExitCode::partial;
  if (is<OutsideTolerance>(error)) return ExitCode::outside_tolerance;
  return ExitCode::fault;
}

int report_failure(const std::string& program, const std::exception& error) {
  // Names in users' files may hold anything: an error stays one line and moves no cursor.
  std::string line = error.what();
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < ' ' || c == 127) c = '?';
  }
  if (is<Interrupted>(error)) fmt::print(stderr, "\n");  // ends a line of progress
  fmt::print(stderr, "{}: {}\n", program, line);
  return static_cast<int>(exit_code_of(error));
}

}  // namespace stepcast
