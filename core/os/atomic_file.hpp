#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/error.hpp"

namespace stepcast {

/// The disk or the user's quota is full: `FILE: cannot write: REASON`. Exit code 3.
struct DiskFull : LimitError {
  using LimitError::LimitError;
};

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

/// Creates `folder` with its parents and proves that a file can be written there, before any work is done.
/// @throws DiskFull; InputError `DIR: cannot write here: REASON`
void check_writable(const std::filesystem::path& folder);

/// Returns the whole file as bytes.
/// @throws InputError `FILE: cannot read: REASON`
std::string read_file(const std::filesystem::path& file);

}  // namespace stepcast
