#include "runtime/runs/input_loader.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <stdexcept>
#include <string>

namespace stepcast {
namespace {

constexpr std::int64_t kBlock = 4096;         // alignment of O_DIRECT on common disks
constexpr std::int64_t kReadBytes = 4 << 20;  // bytes of one call of the kernel
constexpr std::int64_t kLeast = 64 << 20;     // size of a file
constexpr std::int64_t kMost = 1LL << 30;
constexpr std::int64_t kReads = 4;  // reads of the largest size that a file holds

std::int64_t round_up(std::int64_t bytes, std::int64_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

[[noreturn]] void fail(const std::filesystem::path& folder, const char* what) {
  throw std::runtime_error(
      fmt::format("input of a rank in {}: {}: {}", folder.string(), what, std::strerror(errno)));
}

/// Opens a file for reading and writing that has no name any more.
int open_without_name(const std::filesystem::path& folder) {
  std::string name = (folder / "input-XXXXXX").string();
  const int descriptor = mkostemp(name.data(), O_CLOEXEC);
  if (descriptor < 0) fail(folder, "cannot make a file");
  unlink(name.c_str());
  return descriptor;
}

void write_chunk(int descriptor, const std::byte* data, const std::filesystem::path& folder) {
  for (std::int64_t written = 0; written < kReadBytes;) {
    const ssize_t more = write(descriptor, data + written, kReadBytes - written);
    if (more < 0 && errno == EINTR) continue;
    if (more <= 0) fail(folder, "cannot write");
    written += more;
  }
}

}  // namespace

RankInput::RankInput(const std::filesystem::path& folder, std::int64_t largest)
    : descriptor_(open_without_name(folder)),
      size_(round_up(std::clamp(kReads * largest, kLeast, kMost), kReadBytes)),
      buffer_(static_cast<std::byte*>(std::aligned_alloc(kBlock, kReadBytes))) {
  try {
    if (buffer_ == nullptr) throw std::bad_alloc();
    // Some disks store equal blocks only once, so each block begins with its place in the file.
    std::mt19937_64 random(1);
    for (std::int64_t i = 0; i < kReadBytes; i += 8) {
      const std::uint64_t bits = random();
      std::memcpy(&buffer_[i], &bits, 8);
    }
    for (std::int64_t at = 0; at < size_; at += kReadBytes) {
      for (std::int64_t block = 0; block < kReadBytes; block += kBlock) {
        const std::int64_t number = at + block;
        std::memcpy(&buffer_[block], &number, 8);
      }
      write_chunk(descriptor_, buffer_.get(), folder);
    }
    if (fsync(descriptor_) != 0) fail(folder, "cannot write");
    direct_ = fcntl(descriptor_, F_SETFL, O_DIRECT) == 0;
  } catch (...) {
    close(descriptor_);
    throw;
  }
}

RankInput::~RankInput() {
  close(descriptor_);
}

void RankInput::read(std::int64_t bytes) {
  for (std::int64_t left = round_up(bytes, kBlock); left > 0;) {
    if (at_ == size_) at_ = 0;
    const std::int64_t wanted = std::min({left, kReadBytes, size_ - at_});
    if (!direct_) posix_fadvise(descriptor_, at_, wanted, POSIX_FADV_DONTNEED);
    const ssize_t got = pread(descriptor_, buffer_.get(), wanted, at_);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EINVAL && direct_) {  // the file system accepts the flag and refuses such reads
      direct_ = fcntl(descriptor_, F_SETFL, 0) != 0;
      if (!direct_) continue;
    }
    if (got <= 0)
      throw std::runtime_error(fmt::format("cannot read the input of a rank: {}", std::strerror(errno)));
    at_ += got;
    left -= got;
    if (direct_) at_ = std::min(round_up(at_, kBlock), size_);
  }
}

void InputLoader::start(std::int64_t bytes, std::function<void(std::exception_ptr)> loaded) {
  std::shared_ptr<void> pending;  // ends when the thread has executed or discarded the load
  if (polling_ != nullptr) {
    ++polling_->pending_loads;
    pending.reset(static_cast<void*>(nullptr), [polling = polling_](void*) { --polling->pending_loads; });
  }
  thread_.submit([this, bytes, loaded = std::move(loaded), pending] {
    std::exception_ptr error;
    try {
      file_.read(bytes);
    } catch (...) {
      error = std::current_exception();
    }
    loaded(error);
  });
}

}  // namespace stepcast
