#include "core/os/folders.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>

#include "core/os/files.hpp"

namespace stepcast {
namespace {

/// The command line of a process; empty if it cannot be read.
std::string command_of(int process) {
  std::ifstream file(fmt::format("/proc/{}/cmdline", process), std::ios::binary);
  std::string command;
  for (std::string word; std::getline(file, word, '\0');) command += (command.empty() ? "" : " ") + word;
  for (char& c : command) c = static_cast<unsigned char>(c) < ' ' ? '?' : c;
  return command;
}

[[noreturn]] void throw_held(const std::filesystem::path& file, int process) {
  const std::string command = command_of(process);
  throw InputError(fmt::format("{}: process {}{} writes here; wait for it or name another folder with -o",
                               file.parent_path().string(), process,
                               command.empty() ? "" : fmt::format(" ({:.80})", command)));
}

/// The process that holds the lock; 0: none.
int holder_of(int descriptor) {
  struct flock wanted {};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  if (::fcntl(descriptor, F_GETLK, &wanted) != 0 || wanted.l_type == F_UNLCK) return 0;
  return wanted.l_pid;
}

bool take(int descriptor) {
  struct flock wanted {};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  return ::fcntl(descriptor, F_SETLK, &wanted) == 0;
}

/// False if the holder before has removed the file between its opening and its locking.
bool is_still(const std::filesystem::path& file, int descriptor) {
  struct stat opened {
  }, there{};
  return ::fstat(descriptor, &opened) == 0 && ::stat(file.c_str(), &there) == 0 &&
         opened.st_ino == there.st_ino && opened.st_dev == there.st_dev;
}

/// Removes temporary files that killed runs left (write_atomically). The holder of the lock is the only
/// writer.
void remove_left_files(const std::filesystem::path& folder) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    std::error_code ignored;
    if (name.starts_with('.') && name.ends_with(".tmp")) std::filesystem::remove(entry.path(), ignored);
  }
}

}  // namespace

FolderLock::FolderLock(const std::filesystem::path& folder) : file_(folder / ".lock"), owner_(::getpid()) {
  while (true) {
    descriptor_ = ::open(file_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (descriptor_ < 0) throw_unwritable(file_, "cannot lock", errno);
    const bool taken = take(descriptor_);
    if (taken && is_still(file_, descriptor_)) break;
    const int error = errno, holder = taken ? 0 : holder_of(descriptor_);
    ::close(descriptor_);
    descriptor_ = -1;
    errno = error;
    if (holder > 0) throw_held(file_, holder);
    if (!taken && error != EAGAIN && error != EACCES) throw_unwritable(file_, "cannot lock", errno);
  }
  remove_left_files(folder);
}

FolderLock::~FolderLock() {
  if (descriptor_ < 0) return;
  if (::getpid() == owner_) ::unlink(file_.c_str());
  ::close(descriptor_);
}

namespace {

constexpr std::string_view kBegin = "stepcast-", kEnd = ".owner";  // six other characters are between them

/// Locks an open file of this user. @return false if another process holds it
bool lock_own(int descriptor) {
  struct stat state {};
  return ::fstat(descriptor, &state) == 0 && state.st_uid == ::geteuid() &&
         ::flock(descriptor, LOCK_EX | LOCK_NB) == 0;
}

std::filesystem::path folder_of(const std::filesystem::path& owner) {
  return std::filesystem::path(owner).replace_extension();
}

/// Removes the folders of processes that were killed. The owner's file goes last, so that nothing is lost
/// sight of.
void remove_ownerless(const std::filesystem::path& parent) {
  std::error_code error, ignored;
  std::filesystem::directory_iterator entry(parent, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    const std::string name = entry->path().filename().string();
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() != kBegin.size() + 6 + kEnd.size())
      continue;
    const int owner = ::open(entry->path().c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (owner < 0) continue;
    if (lock_own(owner)) {
      std::filesystem::remove_all(folder_of(entry->path()), ignored);
      std::filesystem::remove(entry->path(), ignored);
    }
    ::close(owner);
  }
}

std::filesystem::path temporary_folder() {
  std::error_code error;
  std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error) throw_unwritable("TMPDIR", "cannot make a folder there", error.value());
  return folder;
}

}  // namespace

WorkFolder::WorkFolder() : WorkFolder(temporary_folder()) {}

WorkFolder::WorkFolder(const std::filesystem::path& parent) {
  remove_ownerless(parent);
  while (true) {
    std::string name = (parent / kBegin).string() + "XXXXXX" + std::string(kEnd);
    owner_ = ::mkostemps(name.data(), kEnd.size(), O_CLOEXEC);
    if (owner_ < 0) throw_unwritable(parent, "cannot make a folder here", errno);
    path_ = folder_of(name);
    // Before it was locked, another process may have taken it for one that was left.
    if (lock_own(owner_) && is_still(name, owner_)) break;
    ::close(owner_);
  }
  if (::mkdir(path_.c_str(), 0700) == 0) return;
  const int error = errno;
  ::unlink((path_.string() + std::string(kEnd)).c_str());
  ::close(owner_);
  throw_unwritable(parent, "cannot make a folder here", error);
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  std::filesystem::remove(path_.string() + std::string(kEnd), ignored);
  ::close(owner_);
}

std::filesystem::path results_folder(const std::string& output, const std::string& name) {
  return output.empty() ? std::filesystem::path("results") / name : std::filesystem::path(output);
}

}  // namespace stepcast
