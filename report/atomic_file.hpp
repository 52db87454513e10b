#pragma once

#include <filesystem>
#include <string>
#include <string_view>

namespace stepcast {

/// Writes `text` to `file`: into a temporary file of the same folder, fsync, rename. Readers see the old text
/// or the new one, never a part; after an error the old file is untouched and no temporary file remains.
/// @throws InputError `FILE: cannot write: REASON`
void write_atomically(const std::filesystem::path& file, std::string_view text);

/// The same for a finished file that another program, or a stream, wrote in that file system; gone after an
/// error.
/// @throws InputError `FILE: cannot write: REASON`
void put_in_place(const std::filesystem::path& temporary, const std::filesystem::path& file);

/// Appends `line` and a newline to `file` in one write, creating the file: what survives when a sweep is
/// interrupted.
/// @throws InputError `FILE: cannot write: REASON`
void append_line(const std::filesystem::path& file, std::string_view line);

/// Creates `folder` with its parents and proves that a file can be written there, before any work is done.
/// @throws InputError `DIR: cannot write here: REASON`
void check_writable(const std::filesystem::path& folder);

/// The whole file as bytes.
/// @throws InputError `FILE: cannot read: REASON`
std::string read_file(const std::filesystem::path& file);

}  // namespace stepcast
