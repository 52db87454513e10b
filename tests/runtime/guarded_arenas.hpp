#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

namespace stepcast::test {

/// Memory that is mapped twice: at the device's addresses, which are protected unless a kernel runs, and at
/// addresses for copies.
class Arena {
 public:
  explicit Arena(std::size_t floats) : bytes_((floats * sizeof(float) / 4096 + 1) * 4096) {
    const int file = memfd_create("guarded", MFD_CLOEXEC);
    if (file < 0 || ftruncate(file, bytes_) != 0) throw std::runtime_error("memfd");
    device_ = mapped(file, PROT_NONE);
    copies_ = mapped(file, PROT_READ | PROT_WRITE);
    close(file);
  }
  Arena(const Arena&) = delete;
  ~Arena() {
    munmap(device_, bytes_);
    munmap(copies_, bytes_);
  }

  void open(bool wide) { mprotect(device_, bytes_, wide ? PROT_READ | PROT_WRITE : PROT_NONE); }
  float* device() const { return reinterpret_cast<float*>(device_); }
  /// The address for copies of a device address; null if it is not in this arena.
  float* for_copies(const float* there) const {
    const auto* place = reinterpret_cast<const char*>(there);
    if (place < device_ || place >= device_ + bytes_) return nullptr;
    return reinterpret_cast<float*>(copies_ + (place - device_));
  }

 private:
  char* mapped(int file, int protection) const {
    return static_cast<char*>(mmap(nullptr, bytes_, protection, MAP_SHARED, file, 0));
  }

  std::size_t bytes_;
  char *device_ = nullptr, *copies_ = nullptr;
};

class Arenas {
 public:
  std::shared_ptr<float> make(std::size_t floats) {
    const auto arena = std::make_shared<Arena>(floats);
    const std::lock_guard lock(mutex_);
    all_.push_back(arena);
    return {arena, arena->device()};
  }
  float* for_copies(const float* there) {
    const std::lock_guard lock(mutex_);
    for (const auto& weak : all_) {
      const auto arena = weak.lock();
      if (float* found = arena ? arena->for_copies(there) : nullptr) return found;
    }
    throw std::logic_error("a copy from or to memory that is not the device's");
  }
  /// Kernels of several threads may run at once; the last that ends closes the memory.
  void open(bool wide) {
    const std::lock_guard lock(mutex_);
    running_ += wide ? 1 : -1;
    if (running_ != (wide ? 1 : 0)) return;
    for (const auto& weak : all_) {
      if (const auto arena = weak.lock()) arena->open(wide);
    }
  }

 private:
  std::mutex mutex_;
  int running_ = 0;
  std::vector<std::weak_ptr<Arena>> all_;
};

/// Opens the device memory for its lifetime, in which a kernel runs.
class Running {
 public:
  explicit Running(Arenas& arenas) : arenas_(arenas) { arenas_.open(true); }
  Running(const Running&) = delete;
  ~Running() { arenas_.open(false); }

 private:
  Arenas& arenas_;
};

struct Guard {
  Arenas arenas;

  Running running() { return Running(arenas); }
};

}  // namespace stepcast::test
