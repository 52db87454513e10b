#pragma once

#include <signal.h>

namespace stepcast {

/// Catches SIGINT and SIGTERM during its lifetime. Guards may be nested; a signal is remembered until the
/// outermost guard ends.
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
};

}  // namespace stepcast
