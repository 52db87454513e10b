#include "core/cli/command_output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "core/error.hpp"

namespace stepcast {
namespace {

using JsonTable = std::pair<std::string, std::vector<std::string>>;

std::vector<JsonTable>& json_tables() {
  static std::vector<JsonTable> tables;
  return tables;
}

bool& quiet() {
  static bool is_quiet = false;
  return is_quiet;
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

bool output_is_quiet() {
  return quiet();
}

CommandOutput::CommandOutput(const OutputOptions& options) {
  quiet() = options.quiet;
  if (!options.quiet && !options.json) return;
  std::fflush(stdout);
  json_tables().clear();
  real_ = dup(STDOUT_FILENO);
  const int other = options.quiet ? open("/dev/null", O_WRONLY | O_CLOEXEC) : STDERR_FILENO;
  if (real_ < 0 || other < 0 || dup2(other, STDOUT_FILENO) < 0)
    throw InputError("standard output cannot be replaced: " + std::generic_category().message(errno));
  if (options.quiet) close(other);
}

CommandOutput::~CommandOutput() {
  quiet() = false;
  if (real_ < 0) return;
  std::fflush(stdout);
  dup2(real_, STDOUT_FILENO);
  close(real_);
}

void CommandOutput::write_json() const {
  std::vector<std::string> members;
  for (const auto& [table, rows] : json_tables())
    members.push_back(fmt::format("\"{}\":[{}]", table, fmt::join(rows, ",")));
  const std::string text = fmt::format("{{{}}}\n", fmt::join(members, ","));
  std::size_t written = 0;
  while (written < text.size()) {
    const ssize_t count = write(real_, text.data() + written, text.size() - written);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0)
      throw InputError("standard output: cannot write: " + std::generic_category().message(errno));
    written += static_cast<std::size_t>(count);
  }
}

void add_json_row(const std::string& table, const std::string& row) {
  auto& tables = json_tables();
  auto found = std::ranges::find(tables, table, &JsonTable::first);
  if (found == tables.end()) found = tables.insert(tables.end(), {table, {}});
  std::string line = row;
  while (line.ends_with('\n')) line.pop_back();
  found->second.push_back(std::move(line));
}

std::string resources_used() {
  double cpu = 0;
  long most = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    cpu += seconds(usage.ru_utime) + seconds(usage.ru_stime);
    most = std::max(most, usage.ru_maxrss);  // KiB
  }
  return fmt::format("{:.1f} CPU s, at most {:.0f} MB a process", cpu, 1024e-6 * static_cast<double>(most));
}

}  // namespace stepcast
