#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "kernels/cudnn/capture/step_events.hpp"
#include "kernels/network/backend.hpp"
#include "kernels/timing/capture.hpp"

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

TEST_CASE("a device is cuda: and a number", "[gpu][errors]") {
  CHECK(device_number("cuda:0") == 0);
  CHECK(device_number("cuda:17") == 17);
  for (const std::string text :
       {"", "cuda", "cuda:", "cuda:x", "cuda:-1", "cuda:1x", "gpu:0", "cuda:99999"}) {
    CHECK_THROWS_WITH(device_number(text), "--device: expected cuda:NUMBER, got \"" + text + "\"");
  }
}

TEST_CASE("a missing device is refused in one line that names it", "[gpu][errors]") {
  GpuOptions options;
  options.device = 9999;  // no machine has so many GPUs
  CHECK_THROWS_AS(make_cudnn_backend(options), InputError);
  CHECK_THROWS_WITH(make_cudnn_backend(options), Catch::StartsWith("--device cuda:9999: "));
  CHECK_THROWS_WITH(free_gpu_memory(9999),
                    Catch::StartsWith("--device cuda:9999: ") && !Catch::Contains("\n"));
}
