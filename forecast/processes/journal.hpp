#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/os/files.hpp"
#include "report/results/results.hpp"

namespace stepcast {

/// The finished simulations of a run or of its shards, by name (`name_of`). The file has one JSON object per
/// line, whose last member is a checksum of the others. A simulation without a result has only the column
/// `failed`, with the reason.
using Journal = std::map<std::string, Row>;

/// Reads a journal, and removes from the file the lines that are damaged, so that their simulations are
/// repeated; a line on standard error says so. A last line that an interruption cut off is removed without a
/// word. Failed simulations are left out, so that a resumed run tries them again. No file, or an empty path,
/// is an empty journal.
Journal read_journal(const std::filesystem::path& file);

/// The journals of all shards together, with failed simulations; a result replaces a failure.
/// @throws InputError if a file cannot be read or has a damaged line, or if two shards have different results
/// of a simulation
Journal merged_journals(const std::vector<std::filesystem::path>& files);

/// A line of a journal. @param row  with the column `simulation`
std::string journal_line(const std::string& scenario, const Row& row);

/// A journal that grows. About once a second it is flushed to the disk, which takes longer than many
/// simulations, so that a power cut costs one second of them.
class JournalWriter {
 public:
  using Flush = void (*)(const std::filesystem::path& file);

  /// @param file  empty: nothing is written
  explicit JournalWriter(std::filesystem::path file, Flush how = flush_file)
      : file_(std::move(file)), flush_(how) {}

  /// Appends a simulation. @throws DiskFull; InputError `FILE: cannot write: REASON`
  void add(const std::string& scenario, const std::string& name, const Row& row);
  /// Flushes what is not on the disk yet.
  void flush();

 private:
  using Clock = std::chrono::steady_clock;
  std::filesystem::path file_;
  Flush flush_;
  Clock::time_point flushed_ = Clock::now();
  bool waits_ = false;  ///< lines are not flushed yet
};

/// The row of a simulation that failed, and the reason in such a row; "" for a row with a result.
Row failed_row(const std::string& reason);
std::string failure_of(const Row& row);

}  // namespace stepcast
