#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "core/error.hpp"

namespace stepcast {

/// An empty folder for temporary files. Its destructor removes it with all that it holds.
class WorkFolder {
 public:
  /// @throws InputError if the system's folder for temporary files is not writable
  WorkFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "stepcast-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw InputError("cannot create a temporary folder like " + name);
    path_ = name;
  }
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace stepcast
