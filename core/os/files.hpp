#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.hpp"

namespace stepcast {

/// Whether a path from the command line is "-", which stands for standard input.
bool is_standard_input(const std::filesystem::path& file);

/// All of standard input. It is read at the first call, so that a command can look at it several times.
/// @throws InputError if it is larger than 1 MiB
const std::string& standard_input();

/// The disk or the user's quota is full: `FILE: cannot write: REASON`. Exit code 3.
struct DiskFull : LimitError {
  using LimitError::LimitError;
};

/// Throws for a failed write, by errno's value `error`: "FILE: WHAT: REASON".
/// @throws DiskFull; LimitError for another shortage; InputError for all else
[[noreturn]] void throw_unwritable(const std::filesystem::path& file, const char* what, int error);

/// Writes `text` to a temporary file of the same folder, syncs it and renames it to `file`. Readers see the
/// old text or the new one, never a part. After an error the old file is untouched and no temporary file
/// remains.
/// @throws DiskFull; InputError `FILE: cannot write: REASON`
void write_atomically(const std::filesystem::path& file, std::string_view text);

/// Syncs `temporary`, a finished file in the same file system, and renames it to `file`. After an error
/// `temporary` is removed.
/// @throws DiskFull; InputError `FILE: cannot write: REASON`
void replace_file(const std::filesystem::path& temporary, const std::filesystem::path& file);

/// Appends `line` and a newline to `file` in one write, creating the file if needed. Finished lines survive
/// when a sweep is interrupted, and a line that does not fit on the disk leaves no part of itself.
/// @throws DiskFull; InputError `FILE: cannot write: REASON`
void append_line(const std::filesystem::path& file, std::string_view line);

/// Puts what was appended to `file` on the disk itself, so that it survives a power cut.
/// @throws DiskFull; InputError `FILE: cannot write: REASON`
void flush_file(const std::filesystem::path& file);

/// Creates `folder` with its parents and proves that a file can be written there, before any work is done.
/// @throws DiskFull; InputError `DIR: cannot write here: REASON`
void check_writable(const std::filesystem::path& folder);

/// Returns the whole file as bytes.
/// @throws InputError `FILE: cannot read: REASON`
std::string read_file(const std::filesystem::path& file);

/// The files of a run for which the disk has no room. The run goes on without them, so that smaller files,
/// tables and its printed results are not lost with the largest picture.
class MissingFiles {
 public:
  /// Calls `write(FOLDER/NAME)`. If the disk is full, the name is remembered, and a file of that name that an
  /// earlier run left is removed, because it does not belong to the new results.
  template <class Write>
  void attempt(const std::filesystem::path& folder, const std::string& name, const Write& write) {
    try {
      write(folder / name);
    } catch (const DiskFull&) {
      add(folder, {name});
    }
  }
  void add(const std::filesystem::path& folder, const std::vector<std::string>& names);

  const std::vector<std::string>& names() const { return names_; }
  /// @param then  what the user can do once there is room
  /// @throws DiskFull "FOLDER: the disk is full; missing: a.csv, b.png; THEN", unless nothing is missing
  void report(const std::filesystem::path& folder, const std::string& then) const;

 private:
  std::vector<std::string> names_;
};

}  // namespace stepcast
