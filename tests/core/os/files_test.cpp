#include "core/os/files.hpp"

#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>

#include "core/error.hpp"
#include "core/os/folders.hpp"
#include "tests/report/temporary_folder.hpp"

using namespace stepcast;

namespace {

/// Simulates a full disk: during its lifetime no file can grow beyond `bytes`.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    handler_ = ::signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{bytes, before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    ::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  sighandler_t handler_;
};

}  // namespace

TEST_CASE("write_atomically replaces the whole file and leaves nothing beside it", "[report]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.csv";
  write_atomically(file, "a long first text\n");
  write_atomically(file, std::string("b\0c", 3));
  CHECK(read_file(file) == std::string("b\0c", 3));
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("a write that fails half way keeps the old file and no temporary one", "[report][errors]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.csv";
  write_atomically(file, "old");
  {
    const FileSizeLimit full(1000);
    CHECK_THROWS_WITH(write_atomically(file, std::string(5000, 'x')),
                      file.string() + ": cannot write: File too large");
  }
  CHECK(read_file(file) == "old");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("write_atomically names the file and the reason", "[report][errors]") {
  const TemporaryFolder folder;
  const auto missing = folder.path() / "missing" / "a.csv";
  CHECK_THROWS_AS(write_atomically(missing, ""), InputError);
  CHECK_THROWS_WITH(write_atomically(missing, ""),
                    missing.string() + ": cannot write: No such file or directory");

  const auto folder_instead = folder.path() / "a.csv";
  std::filesystem::create_directory(folder_instead);
  CHECK_THROWS_WITH(write_atomically(folder_instead, "x"),
                    folder_instead.string() + ": cannot write: Is a directory");
  CHECK(entries(folder.path()) == 1);
}

TEST_CASE("append_line adds one line to the file", "[report]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "results.jsonl";
  append_line(file, "{}");
  append_line(file, "{\"a\":1}");
  CHECK(read_file(file) == "{}\n{\"a\":1}\n");
}

TEST_CASE("check_writable creates the folder, leaves it empty and refuses what cannot hold files",
          "[report][errors]") {
  const TemporaryFolder folder;
  const auto inner = folder.path() / "a" / "b";
  check_writable(inner);
  check_writable(inner);
  CHECK(entries(inner) == 0);

  write_atomically(folder.path() / "file", "");
  const auto under_file = folder.path() / "file" / "c";
  CHECK_THROWS_AS(check_writable(under_file), InputError);
  CHECK_THROWS_WITH(check_writable(under_file), under_file.string() + ": cannot write here: Not a directory");
  CHECK_THROWS_WITH(check_writable(folder.path() / "file"),
                    (folder.path() / "file").string() + ": cannot write here: Not a directory");
}

TEST_CASE("read_file names the file and the reason", "[report][errors]") {
  const TemporaryFolder folder;
  CHECK_THROWS_WITH(read_file(folder.path() / "x"),
                    (folder.path() / "x").string() + ": cannot read: No such file or directory");
  CHECK_THROWS_WITH(read_file(folder.path()), folder.path().string() + ": cannot read: Is a directory");
  CHECK_THROWS_WITH(read_file("/dev/zero"), "/dev/zero: cannot read: is a device, not a file");
}

TEST_CASE("replace_file puts the new file in place, and on errors removes it and keeps the old one",
          "[report][errors]") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "scaling.svg", drawn = folder.path() / "drawn";
  write_atomically(file, "old");
  write_atomically(drawn, "new");
  replace_file(drawn, file);
  CHECK(read_file(file) == "new");
  CHECK(entries(folder.path()) == 1);
  write_atomically(drawn, "newer");
  const auto missing = folder.path() / "missing" / "scaling.svg";
  CHECK_THROWS_WITH(replace_file(drawn, missing),
                    missing.string() + ": cannot write: No such file or directory");
  CHECK(entries(folder.path()) == 1);
  CHECK_THROWS_AS(replace_file(folder.path() / "never", file), InputError);
  CHECK(read_file(file) == "new");
}

TEST_CASE("a full disk is a limit, not a mistake in the input, and leaves no part of a line",
          "[report][errors]") {
  CHECK_THROWS_MATCHES(append_line("/dev/full", "line"), DiskFull,
                       Catch::Message("/dev/full: cannot write: No space left on device"));
  const TemporaryFolder folder;
  const auto journal = folder.path() / "simulations.jsonl";
  append_line(journal, "first");
  {
    const FileSizeLimit full(8);  // room for a part of the second line
    CHECK_THROWS_AS(append_line(journal, "second"), InputError);
  }
  append_line(journal, "third");
  CHECK(read_file(journal) == "first\nthird\n");
}

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
