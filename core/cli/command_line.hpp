#pragma once

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace stepcast {

/// The amount and form of output that the user asked for: the options -q, -v and --json.
struct OutputOptions {
  bool quiet = false;    ///< nothing but errors
  bool verbose = false;  ///< also the version, and at the end time and memory
  bool json = false;     ///< the tables as one JSON object on standard output, and all else on standard error
};

/// Sends standard output to where the options say, while a command runs.
class CommandOutput {
 public:
  explicit CommandOutput(const OutputOptions& options);
  ~CommandOutput();
  CommandOutput(const CommandOutput&) = delete;
  CommandOutput& operator=(const CommandOutput&) = delete;

  /// Writes the object {"TABLE": [ROW, ...], ...} of all rows since the start to the real standard output.
  void write_json() const;
  /// Writes a text to the real standard output. @throws InputError
  void write(const std::string& text) const;

 private:
  int real_ = -1;  ///< file descriptor of the real standard output; -1: it was not changed
};

/// True while a command runs with -q.
bool output_is_quiet();

/// Adds a row, which is JSON text, to a table of the command's JSON object.
void add_json_row(const std::string& table, const std::string& row);

/// Processor seconds and greatest memory of this process and its children, such as "3.1 CPU s, at most 120 MB
/// a process".
std::string resources_used();

/// One option or positional argument of a command. The functions are those of CLI11's Option, and calls can
/// be chained. A copy refers to the same option.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  Option required() const;
  Option type_name(const std::string& name) const;  ///< what --help prints for the value, such as DIR
  Option range(int least, int most) const;
  Option range(double least, double most) const;
  Option one_of(const std::vector<std::string>& words) const;
  Option show_default() const;  ///< --help prints the value that the variable has now
  Option one_value() const;     ///< each occurrence takes one value; a list takes several occurrences
  Option values(int count) const;
  /// Each value is replaced by what the function returns for it. @param read  may throw InputError
  Option transform(const std::function<std::string(const std::string&)>& read) const;
  Option delimiter(char separator) const;
  Option excludes(const Option& other) const;
  bool given() const;

 private:
  CLI::Option* option_;
};

/// An option or positional argument, for shell completion and man pages.
struct CommandOption {
  std::vector<std::string> names = {};  ///< "--output", "-o"; none for a positional argument
  std::string help = {};                ///< its first sentence
  std::string type = {};                ///< what --help prints for the value, such as DIR; empty for a flag
  std::vector<std::string> words = {};  ///< the only values that are allowed; empty: others
};

/// A command, for shell completion.
struct CommandDescription {
  std::string path;                                                   ///< "show platform"; "" for the program
  std::vector<std::pair<std::string, std::string>> subcommands = {};  ///< name and first sentence
  std::vector<CommandOption> options = {};
};

/// A command with its options. This and Option stand in front of CLI11, so that only one file compiles that
/// library: it costs each file that includes it some 3 s. A copy refers to the same command.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  Command add_subcommand(const std::string& name, const std::string& description) const;

  /// @param names  "-o,--output", or a word without dashes for a positional argument
  /// @param value  written while the command line is parsed; must live until then
  /// @tparam Value  a number, std::string, std::filesystem::path or a vector (command_line.cpp lists the
  /// types)
  template <class Value>
  Option add_option(const std::string& names, Value& value, const std::string& help = "") const;
  Option add_flag(const std::string& names, bool& value, const std::string& help = "") const;

  enum class Json { no, yes };

  void footer(const std::string& text) const;
  void require_subcommand() const;  ///< exactly one
  /// Also gives the command the options -q and -v, and --json if its results are tables (add_json_row).
  void callback(const std::function<void()>& work, Json json = Json::no) const;
  /// The same for a command that writes the file `file`, which outlives the command line. For the name "-",
  /// `work` writes STEM.yaml in a temporary folder; its text goes to standard output, and nothing else does.
  void callback_with_file(const std::function<void()>& work, std::string& file,
                          const std::string& stem) const;

  /// This command and all below it, in the order of --help.
  std::vector<CommandDescription> descriptions() const;

 private:
  CLI::App* app_;
};

/// The command line of a program.
class CommandLine {
 public:
  CommandLine(const std::string& program, const std::string& version, const std::string& description);
  ~CommandLine();

  Command command() const { return Command(app_.get()); }

  /// Parses the words and runs the callback of the command. Errors of use are printed in one line, with the
  /// nearest command. @return the exit code (ExitCode in core/error.hpp)
  int run(int argc, const char* const* argv);

 private:
  std::unique_ptr<CLI::App> app_;
};

}  // namespace stepcast
