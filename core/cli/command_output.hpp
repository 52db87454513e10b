#pragma once

#include <string>
#include <utility>
#include <vector>

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

}  // namespace stepcast
