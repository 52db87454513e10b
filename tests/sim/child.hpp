#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <functional>
#include <vector>

namespace stepcast {

/// Runs `body` in a child process, because SimGrid allows one simulation a process, and returns its `count`
/// numbers.
inline std::vector<double> numbers_from_child(std::size_t count,
                                              const std::function<std::vector<double>()>& body) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::vector<double> values;
    try {
      values = body();
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      _exit(2);
    }
    const ssize_t size = values.size() * sizeof(double);
    _exit(write(ends[1], values.data(), size) == size ? 0 : 1);
  }
  close(ends[1]);
  std::vector<double> values(count);
  const auto got = read(ends[0], values.data(), count * sizeof(double));
  close(ends[0]);
  waitpid(child, nullptr, 0);
  REQUIRE(got == static_cast<ssize_t>(count * sizeof(double)));
  return values;
}

inline double number_from_child(const std::function<double()>& body) {
  return numbers_from_child(1, [&] { return std::vector<double>{body()}; }).front();
}

}  // namespace stepcast
