#include "core/os/missing_files.hpp"

#include <fmt/format.h>

#include <system_error>

namespace stepcast {

void MissingFiles::add(const std::filesystem::path& folder, const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    std::error_code ignored;
    std::filesystem::remove(folder / name, ignored);
    names_.push_back(name);
  }
}

void MissingFiles::report(const std::filesystem::path& folder, const std::string& then) const {
  if (names_.empty()) return;
  throw DiskFull(
      fmt::format("{}: the disk is full; missing: {}; {}", folder.string(), fmt::join(names_, ", "), then));
}

}  // namespace stepcast
