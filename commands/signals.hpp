#pragma once

#include <signal.h>

namespace stepcast {

/// Takes SIGINT and SIGTERM while it lives. Guards may live inside one another: what one has seen is seen
/// until the outermost ends.
class SignalGuard {
 public:
  SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
  SignalGuard& operator=(const SignalGuard&) = delete;
  ~SignalGuard();

  static bool interrupted();
  static void stop_if_interrupted();  ///< throws Interrupted

 private:
  struct sigaction old_int_ {};
  struct sigaction old_term_ {};
};

}  // namespace stepcast
