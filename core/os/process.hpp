#pragma once

#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "core/typed_numbers.hpp"

namespace stepcast {

/// Size of the machine's memory.
Bytes machine_memory();

/// The end of a child process.
struct FinishedChild {
  bool started = false;     ///< false: the program does not exist or may not be executed
  int status = 0;           ///< exit code, or 128 + the signal that ended it
  std::string errors = {};  ///< text that the child wrote to standard error
};

/// Runs a program found in PATH and waits for it. There is no shell: the program gets every argument
/// unchanged. Standard input is empty, standard output is dropped. The locale is C.UTF-8, so that numbers
/// have decimal points.
/// @param folder  working folder of the child; its standard error is kept in a file there
/// @throws std::system_error if the program exists but cannot be started
FinishedChild run_child(const std::vector<std::string>& arguments, const std::filesystem::path& folder);

/// Catches SIGINT, SIGTERM and, unless nohup ignores it, SIGHUP during its lifetime. Guards may be nested; a
/// signal is remembered until the outermost guard ends.
class SignalGuard {
 public:
  SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  ~SignalGuard();

  static bool interrupted();
  static void stop_if_interrupted();  ///< Throws Interrupted after a signal.

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
  struct sigaction old_hup_ {};
};

}  // namespace stepcast
