#include "core/os/signal_guard.hpp"

#include "core/error.hpp"

namespace stepcast {
namespace {

// A signal handler has no argument for user data, so its result must be a global variable.
volatile sig_atomic_t seen = 0;
int guards = 0;  // number of nested guards

void on_signal(int) {
  seen = 1;
}

}  // namespace

SignalGuard::SignalGuard() {
  struct sigaction action {};
  action.sa_handler = on_signal;  // without SA_RESTART, so that poll returns
  if (guards++ == 0) seen = 0;
  sigaction(SIGINT, &action, &old_int_);
  sigaction(SIGTERM, &action, &old_term_);
}

SignalGuard::~SignalGuard() {
  --guards;
  sigaction(SIGINT, &old_int_, nullptr);
  sigaction(SIGTERM, &old_term_, nullptr);
}

bool SignalGuard::interrupted() {
  return seen != 0;
}

void SignalGuard::stop_if_interrupted() {
  if (interrupted()) throw Interrupted("interrupted");
}

}  // namespace stepcast
