#pragma once

#include <stdlib.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "core/error.hpp"

namespace stepcast {

/// Keeps other processes out of a results folder: two runs that write into one folder would mix their files.
/// The lock is a POSIX record lock on FOLDER/.lock. The system releases it when the process ends, however it
/// ends, and child processes do not inherit it. A file that a killed run left behind does not lock anything.
class FolderLock {
 public:
  /// Removes hidden temporary files that a killed run left in the folder.
  /// @throws InputError that names the process which holds the lock; DiskFull
  explicit FolderLock(const std::filesystem::path& folder);
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;
  /// Removes the file and releases the lock.
  ~FolderLock();

 private:
  std::filesystem::path file_;
  int descriptor_ = -1;
  int owner_ = 0;  ///< a forked child must not remove the file
};

/// The folder for results of a scenario: `output` if -o names one, else results/`name`.
std::filesystem::path results_folder(const std::string& output, const std::string& name);

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
