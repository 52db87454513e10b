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

constexpr const char* kOwner = ".owner";

/// Opens a file of this user and locks it. @return -1, with errno, if that is not possible at once
int locked(const std::filesystem::path& file, int flags) {
  const int descriptor = ::open(file.c_str(), flags | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (descriptor < 0) return -1;
  struct stat state {};
  if (::fstat(descriptor, &state) == 0 && state.st_uid == ::geteuid() &&
      ::flock(descriptor, LOCK_EX | LOCK_NB) == 0)
    return descriptor;
  const int error = errno;
  ::close(descriptor);
  errno = error;
  return -1;
}

/// Removes the folders of processes that were killed.
void remove_ownerless(const std::filesystem::path& parent) {
  std::error_code error, ignored;
  std::filesystem::directory_iterator entry(parent, error);
  for (; !error && entry != std::filesystem::directory_iterator(); entry.increment(error)) {
    if (!entry->path().filename().string().starts_with("stepcast-")) continue;
    const int owner = locked(entry->path() / kOwner, 0);
    if (owner < 0) continue;
    std::filesystem::remove_all(entry->path(), ignored);
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
  constexpr const char* kWhat = "cannot make a folder here";
  remove_ownerless(parent);
  std::string name = (parent / "stepcast-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw_unwritable(parent, kWhat, errno);
  path_ = name;
  // Under its own name the file is locked from the beginning.
  const auto owner = path_ / kOwner, unlocked = path_ / ".unlocked";
  owner_ = locked(unlocked, O_CREAT | O_EXCL);
  if (owner_ >= 0 && ::rename(unlocked.c_str(), owner.c_str()) == 0) return;
  const int error = errno;
  if (owner_ >= 0) ::close(owner_);
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  throw_unwritable(parent, kWhat, error);
}

WorkFolder::~WorkFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  ::close(owner_);
}

std::filesystem::path results_folder(const std::string& output, const std::string& name) {
  return output.empty() ? std::filesystem::path("results") / name : std::filesystem::path(output);
}

}  // namespace stepcast
