#pragma once

#include <filesystem>
#include <string>

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

/// An empty folder for temporary files. Its destructor removes it with all that it holds. If a signal kills
/// the process, the next WorkFolder of the same user in the same parent does: the file FOLDER/.owner is
/// locked (flock) for as long as the process runs.
class WorkFolder {
 public:
  /// In the system's folder for temporary files, or in `parent`.
  /// @throws DiskFull; InputError `PARENT: cannot make a folder here: REASON`
  WorkFolder();
  explicit WorkFolder(const std::filesystem::path& parent);
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;
  ~WorkFolder();
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  int owner_ = -1;
};

}  // namespace stepcast
