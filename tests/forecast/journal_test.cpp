#include "forecast/processes/journal.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <chrono>

#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

TEST_CASE("a journal is flushed to the disk once a second and at the end, not with every line",
          "[commands]") {
  static int flushed = 0;
  const TemporaryFolder folder;
  JournalWriter journal(folder.path() / "j.jsonl", [](const std::filesystem::path&) { ++flushed; });
  journal.flush();
  CHECK(flushed == 0);  // there is nothing to flush, and no file
  const auto begin = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  int lines = 0;
  for (; seconds() < 2.5; ++lines) journal.add("s", fmt::format("{}", lines), Row{});
  CHECK(lines > 100);
  CHECK(flushed >= 1);  // twice, unless this process was held up
  CHECK(flushed <= 2);
  const int before = flushed;
  journal.flush();
  CHECK(flushed == before + 1);
}
