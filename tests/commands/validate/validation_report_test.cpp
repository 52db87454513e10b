#include "commands/validate/validation_report.hpp"

#include <catch2/catch.hpp>

#include "core/os/files.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

TEST_CASE("a stopped validation reports its complete measurements, without an incomplete last line",
          "[commands]") {
  const TemporaryFolder folder;
  CHECK(measured_so_far(folder.path()) == "no run was measured yet");
  const auto file = folder.path() / "samples.jsonl";
  append_line(file, "{\"point\":\"a\",\"seconds\":1.5}");
  append_line(file, "{\"point\":\"b\",\"seconds\":2.5}");
  write_atomically(file, read_file(file) + "{\"point\":");
  CHECK(measured_so_far(folder.path()) == "2 runs measured so far: " + file.string());
}
