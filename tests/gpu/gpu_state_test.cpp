#include <catch2/catch.hpp>

#include "kernels/cudnn/capture/step_events.hpp"

using namespace stepcast;

TEST_CASE("a program receives its arguments unchanged and its whole output is read", "[gpu]") {
  const ProgramOutput plain = output_of({"printf", "%s|", "a b", "$HOME", "*"});
  CHECK(plain.ran);
  CHECK(plain.text == "a b|$HOME|*|");
  const ProgramOutput large = output_of({"head", "-c", "100000", "/dev/zero"});
  CHECK(large.text.size() == 100000);
}

TEST_CASE("a program that fails or does not exist counts as not run", "[gpu][errors]") {
  CHECK_FALSE(output_of({"false"}).ran);
  CHECK_FALSE(output_of({"no-such-program-anywhere"}).ran);
}
