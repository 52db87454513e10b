#include "core/cli/command_line.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdio>

#include "core/os/files.hpp"
#include "tests/report/temporary_folder.hpp"

namespace stepcast::command_line_test {

namespace {

/// Both streams of a program while this exists, each in a file of its own.
class Captured {
 public:
  explicit Captured(const std::string& output = "") {
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
      std::fflush(nullptr);
      kept_[stream - 1] = dup(stream);
      const std::string file = stream == STDOUT_FILENO && !output.empty() ? output : file_of(stream).string();
      const int opened = open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(opened, stream);
      close(opened);
    }
  }
  ~Captured() { restore(); }
  Captured(const Captured&) = delete;
  Captured& operator=(const Captured&) = delete;

  std::string text_of(int stream) {
    restore();
    return read_file(file_of(stream));
  }

 private:
  std::filesystem::path file_of(int stream) const { return folder_.path() / std::to_string(stream); }
  void restore() {
    std::fflush(nullptr);
    for (const int stream : {STDOUT_FILENO, STDERR_FILENO}) {
      if (kept_[stream - 1] < 0) continue;
      dup2(kept_[stream - 1], stream);
      close(kept_[stream - 1]);
      kept_[stream - 1] = -1;
    }
  }

  TemporaryFolder folder_;
  int kept_[2]{-1, -1};
};

struct Answer {
  int code = 0;
  std::string output, errors;
};

/// A program with a command `sum`, which prints a line and adds two rows, and a group `show` with a command.
Answer answer_to(const std::vector<const char*>& words, const std::string& output = "") {
  CommandLine line("prog", "1.2", "A program. It has more to say.");
  std::string file;
  int count = 1, threads = 1;
  bool dry = false;
  const Command sum = line.command().add_subcommand("sum", "Adds numbers. At length.");
  sum.add_option("file", file, "The file. With numbers.");
  sum.add_option("-t,--threads", threads, "Threads.").range(1, 8);
  sum.add_option("--count", count, "How many.").type_name("N");
  sum.add_flag("--dry-run", dry, "Adds nothing.");
  sum.callback(
      [] {
        std::printf("sum\n");
        add_json_row("sums", "{\"sum\":3}\n");
        add_json_row("sums", "{\"sum\":4}");
        add_json_row("units", "{\"unit\":\"s\"}");
      },
      Command::Json::yes);
  const Command show = line.command().add_subcommand("show", "Shows things. Many.");
  show.require_subcommand();
  std::string color;
  show.add_subcommand("color", "Shows a color").add_option("--as", color, "Form.").one_of({"rgb", "hsv"});
  std::vector<const char*> all{"prog"};
  all.insert(all.end(), words.begin(), words.end());
  Captured streams(output);
  const int code = line.run(all.size(), all.data());
  Answer answer{code, output.empty() ? streams.text_of(STDOUT_FILENO) : "", streams.text_of(STDERR_FILENO)};
  return answer;
}

}  // namespace

TEST_CASE("a command describes itself and the commands below it, each option with its words", "[core][cli]") {
  CommandLine line("prog", "1.2", "A program.");
  int threads = 1;
  bool dry = false;
  std::string form, file;
  const Command run = line.command().add_subcommand("run", "Runs it. At length.");
  run.add_option("file", file, "A file. Of numbers.").type_name("FILE");
  run.add_flag("--dry-run", dry, "Does nothing.");
  run.add_option("-t,--threads", threads, "Threads.");
  const Command show = line.command().add_subcommand("show", "Shows it.");
  show.add_subcommand("color", "A color. Of many.").add_option("--as", form, "Form.").one_of({"rgb", "hsv"});
  const auto all = line.command().descriptions();
  std::vector<std::string> paths;
  for (const CommandDescription& one : all) paths.push_back(one.path);
  CHECK(paths == std::vector<std::string>{"", "run", "show", "show color"});
  CHECK(all[0].subcommands ==
        std::vector<std::pair<std::string, std::string>>{{"run", "Runs it"}, {"show", "Shows it."}});
  const auto named = [&](std::size_t command, const std::string& name) {
    for (const CommandOption& option : all[command].options) {
      if (name.empty() ? option.names.empty() : std::ranges::find(option.names, name) != option.names.end())
        return option;
    }
    FAIL("no option " << name);
    return CommandOption{};
  };
  CHECK(named(1, "").help == "A file");
  CHECK(named(1, "").type == "FILE");
  CHECK(named(1, "--dry-run").type.empty());
  CHECK(named(1, "-t").names == std::vector<std::string>{"--threads", "-t"});  // those of groups too
  CHECK(named(3, "--as").words == std::vector<std::string>{"rgb", "hsv"});
}

TEST_CASE("a wrong word of a command line is refused in one line with the nearest right one",
          "[core][cli][errors]") {
  const Answer option = answer_to({"sum", "--thraeds=2"});
  CHECK(option.code == 2);
  CHECK(option.errors ==
        "prog: there is no option \"--thraeds\"; did you mean \"--threads\"? (see --help)\n");
  CHECK(answer_to({"sum", "--zzzzzzz"}).errors == "prog: there is no option \"--zzzzzzz\" (see --help)\n");
  CHECK(answer_to({"show", "colour"}).errors ==
        "prog: there is no command \"colour\"; did you mean \"color\"? (see --help)\n");
  CHECK(answer_to({"sum", "-x"}).errors == "prog: there is no option \"-x\" (see --help)\n");
  CHECK(answer_to({"show", "color", "--as", "hsb"}).errors ==
        "prog: --as: expected one of rgb, hsv, got \"hsb\"; did you mean \"hsv\"? (see --help)\n");
  CHECK(answer_to({"sum", "--threads", "9"}).code == 2);
  CHECK(answer_to({"sum", "--threads", "9"}).output.empty());
}

TEST_CASE("Option --json writes the rows alone, -q nothing, and -v adds lines to standard error",
          "[core][cli]") {
  const Answer plain = answer_to({"sum"});
  CHECK(plain.code == 0);
  CHECK(plain.output == "sum\n");
  const Answer json = answer_to({"sum", "--json"});
  CHECK(json.output == "{\"sums\":[{\"sum\":3},{\"sum\":4}],\"units\":[{\"unit\":\"s\"}]}\n");
  CHECK(json.errors == "sum\n");
  const Answer quiet = answer_to({"sum", "-q"});
  CHECK(quiet.output.empty());
  CHECK(quiet.errors.empty());
  CHECK_FALSE(output_is_quiet());
  const Answer verbose = answer_to({"sum", "-v"});
  CHECK(verbose.output == "sum\n");
  CHECK_THAT(verbose.errors, Catch::StartsWith("prog 1.2\n") && Catch::EndsWith(" MB a process\n"));
}

TEST_CASE("rows that do not fit on the standard output end with an error", "[core][cli][errors]") {
  const Answer full = answer_to({"sum", "--json"}, "/dev/full");
  CHECK(full.code == 3);
  CHECK_THAT(full.errors, Catch::EndsWith("standard output: cannot write: No space left on device\n"));
}

}  // namespace stepcast::command_line_test
