#include <signal.h>

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "core/os/process.hpp"

namespace stepcast {

TEST_CASE("the end of a terminal interrupts, unless nohup ignores it", "[core][signals]") {
  {
    const SignalGuard guard;
    raise(SIGHUP);
    CHECK(SignalGuard::interrupted());
  }
  signal(SIGHUP, SIG_IGN);
  const SignalGuard guard;
  raise(SIGHUP);
  CHECK_FALSE(SignalGuard::interrupted());
  signal(SIGHUP, SIG_DFL);
}

TEST_CASE("a signal is remembered until the outermost guard ends", "[core][signals]") {
  {
    const SignalGuard outer;
    CHECK_NOTHROW(SignalGuard::stop_if_interrupted());
    raise(SIGINT);
    { const SignalGuard inner; }  // as a pool of processes has one
    { const SignalGuard inner; }
    CHECK(SignalGuard::interrupted());
    CHECK_THROWS_AS(SignalGuard::stop_if_interrupted(), Interrupted);
  }
  const SignalGuard next;
  CHECK_FALSE(SignalGuard::interrupted());
}

}  // namespace stepcast
