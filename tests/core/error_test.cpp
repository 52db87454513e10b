#include "core/error.hpp"

#include <catch2/catch.hpp>
#include <stdexcept>

using namespace stepcast;

TEST_CASE("each kind of error has the exit code that users' scripts rely on", "[core][errors]") {
  CHECK(exit_code_of(std::logic_error("")) == ExitCode{1});
  CHECK(exit_code_of(InputError("")) == ExitCode{2});
  CHECK(exit_code_of(LimitError("")) == ExitCode{3});
  CHECK(exit_code_of(Interrupted("")) == ExitCode{4});
  CHECK(exit_code_of(RankLost("")) == ExitCode{4});
  CHECK(exit_code_of(OutsideTolerance("")) == ExitCode{5});
}
