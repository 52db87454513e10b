#include "core/os/folders.hpp"

#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "core/os/files.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

namespace {

/// The error of another process that tries to lock the folder; empty: it got the lock.
std::string refusal_elsewhere(const std::filesystem::path& folder) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    std::string text;
    try {
      const FolderLock lock(folder);
    } catch (const std::exception& error) {
      text = error.what();
    }
    const auto written = write(ends[1], text.data(), text.size());
    _exit(written < 0 ? 1 : 0);
  }
  close(ends[1]);
  std::string text(1000, ' ');
  const ssize_t got = read(ends[0], text.data(), text.size());
  close(ends[0]);
  waitpid(child, nullptr, 0);
  return text.substr(0, std::max<ssize_t>(got, 0));
}

}  // namespace

TEST_CASE("a second process is refused a locked folder and told the first", "[core][lock]") {
  const TemporaryFolder folder;
  {
    const FolderLock lock(folder.path());
    const std::string text = refusal_elsewhere(folder.path());
    CHECK_THAT(text,
               Catch::StartsWith(folder.path().string() + ": process " + std::to_string(getpid()) + " ("));
    CHECK_THAT(text, Catch::EndsWith(") writes here; wait for it or name another folder with -o"));
  }
  CHECK(refusal_elsewhere(folder.path()).empty());
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("the lock of a process that was killed holds nobody up", "[core][lock]") {
  const TemporaryFolder folder;
  write_atomically(folder.path() / ".results.csv.17.0.tmp", "a part");
  const pid_t child = fork();
  if (child == 0) {
    const FolderLock lock(folder.path());
    _exit(0);  // without destructors, so that the file stays
  }
  waitpid(child, nullptr, 0);
  CHECK(std::filesystem::exists(folder.path() / ".lock"));
  CHECK(refusal_elsewhere(folder.path()).empty());
  CHECK(entries(folder.path()) == 0);
}

TEST_CASE("a child that is forked under a lock neither holds nor removes it", "[core][lock]") {
  const TemporaryFolder folder;
  const FolderLock lock(folder.path());
  const pid_t child = fork();
  if (child == 0) {
    lock.~FolderLock();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  CHECK_FALSE(refusal_elsewhere(folder.path()).empty());
}

TEST_CASE("files that do not fit are named together, and the others are written", "[core][errors]") {
  const TemporaryFolder folder;
  write_atomically(folder.path() / "big.png", "of an earlier run");
  MissingFiles missing;
  missing.attempt(folder.path(), "big.png", [](const auto&) { throw DiskFull("full"); });
  missing.attempt(folder.path(), "small.csv", [](const auto& file) { write_atomically(file, "text"); });
  CHECK(entries(folder.path()) == 1);
  CHECK_THROWS_MATCHES(
      missing.report(folder.path(), "free some space"), DiskFull,
      Catch::Message(folder.path().string() + ": the disk is full; missing: big.png; free some space"));
  CHECK_NOTHROW(MissingFiles().report(folder.path(), ""));
}

TEST_CASE("the temporary folder of a killed process is removed by the next one, and no other",
          "[core][lock]") {
  const TemporaryFolder parent;
  const auto strange = parent.path() / "stepcast-results";
  std::filesystem::create_directories(strange / "kept");
  const pid_t child = fork();
  if (child == 0) {
    const WorkFolder left(parent.path());
    write_atomically(left.path() / "file", "text");
    _exit(0);  // without destructors
  }
  waitpid(child, nullptr, 0);
  CHECK(entries(parent.path()) == 3);
  const WorkFolder first(parent.path());
  CHECK(entries(parent.path()) == 3);  // only the killed process's is gone
  { const WorkFolder second(parent.path()); }
  CHECK(std::filesystem::exists(first.path()));
  CHECK(std::filesystem::exists(strange / "kept"));
  CHECK_THROWS_WITH(WorkFolder("/nowhere"), "/nowhere: cannot make a folder here: No such file or directory");
}
