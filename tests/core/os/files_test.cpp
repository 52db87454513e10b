#include "core/os/files.hpp"

#include <signal.h>
#include <sys/resource.h>

#include <catch2/catch.hpp>

#include "core/error.hpp"
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
