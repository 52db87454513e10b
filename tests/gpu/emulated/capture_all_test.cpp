#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/os/files.hpp"
#include "gpu/commands/commands.hpp"
#include "tests/report/temporary_folder.hpp"

// The command capture-all on a fake GPU with 1 GiB of free memory and the name of a listed one.
namespace stepcast::test {
namespace {

/// A network that the fake GPU computes in moments. @return its file
std::string tiny_model(const std::filesystem::path& folder) {
  write_atomically(folder / "tiny.yaml",
                   "name: tiny\nsource: test\ninput: [8]\nlayers:\n  - {name: a, kind: dense, units: 4}\n"
                   "  - {name: loss, kind: softmax_cross_entropy}\n");
  return (folder / "tiny.yaml").string();
}

int capture_all(const std::filesystem::path& folder, const std::string& models, const std::string& seconds) {
  setenv("STEPCAST_DATA", STEPCAST_SOURCE_DIR, 1);
  setenv("PRETENDED_GPU", "NVIDIA H200", 1);
  CommandLine line("stepcast-gpu", "", "");
  add_gpu_capture_all(line.command());
  const std::string out = folder.string();
  const std::vector<const char*> words{"stepcast-gpu", "capture-all", "--models",  models.c_str(),
                                       "--batches",    "2",           "--seconds", seconds.c_str(),
                                       "-o",           out.c_str()};
  return line.run(words.size(), words.data());
}

}  // namespace

TEST_CASE("a capture that can never fit is left out, whatever time it would take", "[fake][capture-all]") {
  const TemporaryFolder folder, models;
  CHECK(capture_all(folder.path(), tiny_model(models.path()) + ",mesh-1k", "3") == 0);
  CHECK(std::filesystem::exists(folder.path() / "tiny-b2-f32-nchw-gpu.yaml"));
  CHECK(entries(folder.path()) == 1);  // no marker is left
}

TEST_CASE("a capture that began twice and ended neither time is not met again", "[fake][capture-all]") {
  const TemporaryFolder folder, models;
  const std::string tiny = tiny_model(models.path());
  const auto marker = folder.path() / "tiny-b2-f32-nchw-gpu.begun";
  write_atomically(marker, "2026-11-23\n2026-11-23\n");
  CHECK(capture_all(folder.path(), tiny, "100") == 1);
  CHECK(entries(folder.path()) == 1);
  write_atomically(marker, "2026-11-23\n");
  CHECK(capture_all(folder.path(), tiny, "100") == 0);
  CHECK_FALSE(std::filesystem::exists(marker));
}

}  // namespace stepcast::test
