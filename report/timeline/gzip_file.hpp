#pragma once

#include <filesystem>
#include <functional>
#include <ostream>

namespace stepcast {

/// Writes a file through a temporary file in the same folder, packed if its name ends in `.gz`. Memory does
/// not grow with the size of the file, and equal text makes equal files.
/// @param write  writes the text
/// @throws DiskFull; InputError `FILE: cannot write: REASON`
void write_file(const std::filesystem::path& file, const std::function<void(std::ostream&)>& write);

}  // namespace stepcast
