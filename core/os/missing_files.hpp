#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/os/atomic_file.hpp"

namespace stepcast {

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
