#include "data/binary_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/error.hpp"

namespace stepcast {

BinaryFile::BinaryFile(const std::string& name)
    : name_(name), descriptor_(::open(name.c_str(), O_RDONLY | O_CLOEXEC)) {
  struct stat about {};
  if (descriptor_ >= 0 && fstat(descriptor_, &about) == 0 && S_ISREG(about.st_mode)) {
    size_ = about.st_size;
    return;
  }
  const std::string why = descriptor_ < 0 ? std::strerror(errno) : "not a regular file";
  if (descriptor_ >= 0) ::close(descriptor_);
  throw InputError(fmt::format("{}: {}", name, why));
}

BinaryFile::BinaryFile(BinaryFile&& other) noexcept
    : name_(std::move(other.name_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

BinaryFile::~BinaryFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void BinaryFile::read(std::int64_t begin, std::span<unsigned char> bytes) const {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(descriptor_, bytes.data() + done, bytes.size() - done,
                                begin + static_cast<std::int64_t>(done));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw InputError(fmt::format("{}: {}", name_, std::strerror(errno)));
    if (got == 0)
      throw InputError(fmt::format("{}: ends at byte {}, expected {} more", name_,
                                   begin + static_cast<std::int64_t>(done), bytes.size() - done));
    done += static_cast<std::size_t>(got);
  }
}

std::uint32_t BinaryFile::big_endian(std::int64_t begin) const {
  std::array<unsigned char, 4> bytes{};
  read(begin, bytes);
  std::uint32_t value = 0;
  for (const unsigned char byte : bytes) value = value << 8 | byte;
  return value;
}

}  // namespace stepcast
