#include "runtime/ranks/shared_control_block.hpp"

#include <fcntl.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <system_error>

#include "runtime/transport/shared_memory_transport.hpp"

namespace stepcast {
namespace {

struct ControlHeader {
  std::int64_t ring;  ///< floats of a ring buffer
  std::atomic<std::uint32_t> stage_barrier;
  RankState ranks[SharedControlBlock::kMaxRanks];
};

constexpr std::size_t kHeader = (sizeof(ControlHeader) + 4095) / 4096 * 4096;

void* mapped(const std::filesystem::path& file, int flags, std::size_t bytes) {
  const int descriptor = ::open(file.c_str(), flags | O_CLOEXEC, 0600);
  if (descriptor < 0) throw std::system_error(errno, std::generic_category(), file.string());
  if ((flags & O_CREAT) != 0) {
    // Where shared memory is full, a first access to the header would be a bus error. Few rings are ever
    // used.
    int error = posix_fallocate(descriptor, 0, kHeader);
    if (error == 0 && ftruncate(descriptor, bytes) != 0) error = errno;
    if (error != 0) {
      close(descriptor);
      throw std::system_error(error, std::generic_category(), file.string());
    }
  }
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  close(descriptor);
  if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), file.string());
  return memory;
}

std::size_t rings_bytes(int ranks, std::int64_t ring) {
  return (SharedMemoryTransport::bytes_for(ranks, ring) + 4095) / 4096 * 4096;
}

}  // namespace

std::unique_ptr<SharedControlBlock> SharedControlBlock::create(const std::filesystem::path& file, int ranks,
                                                               std::int64_t ring) {
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  const std::size_t bytes = kHeader + 2 * rings_bytes(ranks, ring);
  void* memory = mapped(file, O_RDWR | O_CREAT | O_EXCL, bytes);
  static_cast<ControlHeader*>(memory)->ring = ring;
  return std::unique_ptr<SharedControlBlock>(new SharedControlBlock(memory, bytes, ranks));
}

std::unique_ptr<SharedControlBlock> SharedControlBlock::open(const std::filesystem::path& file, int ranks) {
  const std::size_t bytes = std::filesystem::file_size(file);
  return std::unique_ptr<SharedControlBlock>(
      new SharedControlBlock(mapped(file, O_RDWR, bytes), bytes, ranks));
}

SharedControlBlock::~SharedControlBlock() {
  munmap(memory_, bytes_);
}

RankState& SharedControlBlock::rank(RankId rank) const {
  return static_cast<ControlHeader*>(memory_)->ranks[rank.index()];
}

std::atomic<std::uint32_t>& SharedControlBlock::stage_barrier() const {
  return static_cast<ControlHeader*>(memory_)->stage_barrier;
}

RingBuffers SharedControlBlock::ring_memory(int which) const {
  const std::int64_t ring = static_cast<ControlHeader*>(memory_)->ring;
  return {static_cast<char*>(memory_) + kHeader + which * rings_bytes(ranks_, ring), ring};
}

void set_status(RankState& state, const char* status) {
  std::strncpy(state.status, status, sizeof state.status - 1);
  state.heartbeat.fetch_add(1, std::memory_order_relaxed);
}

void open_stage(SharedControlBlock& control, std::uint32_t stage) {
  control.stage_barrier().store(stage);
  syscall(SYS_futex, &control.stage_barrier(), FUTEX_WAKE, INT32_MAX, nullptr, nullptr, 0);
}

void wait_for_stage(SharedControlBlock& control, RankState& state, std::uint32_t stage) {
  set_status(state, "waiting for the forecast");
  state.waiting_for_stage.store(stage);
  while (true) {
    const std::uint32_t open = control.stage_barrier().load();
    if (open >= stage) return;
    const timespec second{1, 0};
    syscall(SYS_futex, &control.stage_barrier(), FUTEX_WAIT, open, &second, nullptr, 0);
    state.heartbeat.fetch_add(1, std::memory_order_relaxed);
  }
}

}  // namespace stepcast
