#include "core/error.hpp"

#include <catch2/catch.hpp>
#include <cerrno>
#include <new>
#include <stdexcept>
#include <system_error>

#include "core/expects.hpp"

using namespace stepcast;

TEST_CASE("each kind of error has the exit code that users' scripts rely on", "[core][errors]") {
  CHECK(exit_code_of(std::logic_error("")) == ExitCode{1});
  CHECK(exit_code_of(InputError("")) == ExitCode{2});
  CHECK(exit_code_of(LimitError("")) == ExitCode{3});
  CHECK(exit_code_of(Interrupted("")) == ExitCode{4});
  CHECK(exit_code_of(RankLost("")) == ExitCode{4});
  CHECK(exit_code_of(OutsideTolerance("")) == ExitCode{5});
}

TEST_CASE("what has run out is named in one line, with the exit code of a limit", "[core][errors]") {
  CHECK(exit_code_of(std::bad_alloc()) == ExitCode{3});
  CHECK_THAT(error_text(std::bad_alloc()), Catch::Matchers::StartsWith("out of memory; "));
  const std::system_error files(EMFILE, std::generic_category(), "socketpair");
  CHECK(exit_code_of(files) == ExitCode{3});
  CHECK(error_text(files) == "socketpair: Too many open files; raise the limit (ulimit -n)");
  CHECK(exit_code_of(std::system_error(EIO, std::generic_category())) == ExitCode{1});
}
TEST_CASE("what a caller must guarantee is checked where NDEBUG is not defined", "[core]") {
  CHECK_NOTHROW(expects(true, "nothing"));
  if (kChecksCallers) {
    CHECK_THROWS_WITH(
        expects(false, "a rank of the plan"),
        Catch::Contains("error_test.cpp:") && Catch::EndsWith("expected of the caller: a rank of the plan"));
  } else {
    CHECK_NOTHROW(expects(false, "a rank of the plan"));
  }
}
