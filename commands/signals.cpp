#include "commands/signals.hpp"

#include "core/error.hpp"

namespace stepcast {
namespace {

volatile sig_atomic_t seen = 0;  // the only way a signal can be seen
int guards = 0;                  // one inside another: a signal seen between two inner ones is not forgotten

void on_signal(int) {
  seen = 1;
}

}  // namespace

SignalGuard::SignalGuard() {
  struct sigaction action {};
  action.sa_handler = on_signal;  // no SA_RESTART: poll must return
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
