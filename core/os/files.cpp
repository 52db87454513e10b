#include "core/os/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <iostream>
#include <sstream>
#include <system_error>

#include "core/error.hpp"

namespace stepcast {

bool is_standard_input(const std::filesystem::path& file) {
  return file == "-";
}

const std::string& standard_input() {
  static const std::string text = [] {
    constexpr std::size_t kMostBytes = 1 << 20;
    std::string all(kMostBytes + 1, '\0');
    std::cin.read(all.data(), all.size());
    all.resize(std::cin.gcount());
    if (all.size() > kMostBytes) throw InputError("standard input: larger than 1 MiB");
    return all;
  }();
  return text;
}

namespace fs = std::filesystem;

void throw_unwritable(const fs::path& file, const char* what, int error) {
  const std::string line =
      fmt::format("{}: {}: {}", file.string(), what, std::generic_category().message(error));
  if (error == ENOSPC || error == EDQUOT) throw DiskFull(line);
  if (is_shortage(error)) throw LimitError(line);
  throw InputError(line);
}

namespace {

/// An open file that is closed when it leaves the scope.
class File {
 public:
  File(const fs::path& path, int flags) : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }

  bool is_open() const { return descriptor_ >= 0; }
  bool sync() { return ::fsync(descriptor_) == 0; }
  off_t size() { return ::lseek(descriptor_, 0, SEEK_END); }
  void truncate(off_t size) { static_cast<void>(::ftruncate(descriptor_, size)); }
  bool write(std::string_view text) {
    while (!text.empty()) {
      const auto written = ::write(descriptor_, text.data(), text.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return false;
      text.remove_prefix(written);
    }
    return true;
  }

 private:
  int descriptor_;
};

/// Hidden file name in the folder of `file`. The process id keeps parallel runs apart; `attempt` avoids the
/// files that a crashed run left behind.
fs::path temporary_name(const fs::path& file, int attempt) {
  return file.parent_path() / fmt::format(".{}.{}.{}.tmp", file.filename().string(), ::getpid(), attempt);
}

/// Writes a new temporary file and returns its name.
/// @throws std::system_error with errno; the temporary file is then removed
fs::path write_temporary(const fs::path& file, std::string_view text) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    auto name = temporary_name(file, attempt);
    File out(name, O_WRONLY | O_CREAT | O_EXCL);
    if (!out.is_open() && errno == EEXIST) continue;
    if (out.is_open() && out.write(text) && out.sync()) return name;
    const int error = errno;
    if (out.is_open()) ::unlink(name.c_str());
    throw std::system_error(error, std::generic_category());
  }
  throw std::system_error(EEXIST, std::generic_category());
}

/// Makes the rename itself survive a power cut, on file systems that can sync folders.
void sync_folder(const fs::path& file) {
  File folder(file.has_parent_path() ? file.parent_path() : fs::path("."), O_RDONLY | O_DIRECTORY);
  if (folder.is_open()) folder.sync();
}

/// Renames `temporary`, whose content must be on the disk already, to `file`.
void rename_to(const fs::path& temporary, const fs::path& file) {
  if (::rename(temporary.c_str(), file.c_str()) != 0) {
    const int error = errno;
    ::unlink(temporary.c_str());
    throw std::system_error(error, std::generic_category());
  }
  sync_folder(file);
}

}  // namespace

void write_atomically(const fs::path& file, std::string_view text) {
  if (fs::exists(file) && !fs::is_regular_file(file) && !fs::is_directory(file))
    throw InputError(fmt::format("{}: expected a regular file to write, or a new name", file.string()));
  try {
    rename_to(write_temporary(file, text), file);
  } catch (const std::system_error& error) {
    throw_unwritable(file, "cannot write", error.code().value());
  }
}

void replace_file(const fs::path& temporary, const fs::path& file) {
  try {
    if (File written(temporary, O_RDONLY); !written.is_open() || !written.sync())
      throw std::system_error(errno, std::generic_category());
    rename_to(temporary, file);
  } catch (const std::system_error& error) {
    ::unlink(temporary.c_str());
    throw_unwritable(file, "cannot write", error.code().value());
  }
}

void append_line(const fs::path& file, std::string_view line) {
  File out(file, O_WRONLY | O_CREAT | O_APPEND);
  const off_t before = out.is_open() ? out.size() : 0;
  if (out.is_open() && out.write(fmt::format("{}\n", line))) return;
  const int error = errno;
  if (out.is_open()) out.truncate(before);  // the next line would be appended to a part of this one
  throw_unwritable(file, "cannot write", error);
}

void flush_file(const fs::path& file) {
  File out(file, O_WRONLY);
  if (!out.is_open() || !out.sync()) throw_unwritable(file, "cannot write", errno);
}

void check_writable(const fs::path& folder) {
  try {
    fs::create_directories(folder);
    ::unlink(write_temporary(folder / "writable", "").c_str());
  } catch (const std::system_error& error) {
    throw_unwritable(folder, "cannot write here", error.code().value());
  }
}

std::string read_file(const fs::path& file) {
  if (is_standard_input(file)) return standard_input();
  std::error_code error;
  const bool folder = fs::is_directory(file, error);
  if (fs::is_character_file(file, error))  // /dev/zero never ends
    throw InputError(fmt::format("{}: cannot read: is a device, not a file", file.string()));
  std::ifstream in(file, std::ios::binary);
  if (folder || !in) throw_unwritable(file, "cannot read", folder ? EISDIR : errno);
  std::ostringstream text;
  text << in.rdbuf();
  return std::move(text).str();
}

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
