#include "runtime/transport/shared_memory_transport.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace stepcast {
namespace {

constexpr std::int64_t kCapacity = 65536;  // floats of a ring; two rings fit into a core's second-level cache
constexpr std::int64_t kChunk = 8192;      // floats that are written or read before the peer is woken

struct alignas(64) Ring {
  alignas(64) std::atomic<std::int64_t> written;
  alignas(64) std::atomic<std::int64_t> read;
  alignas(64) float data[kCapacity];
};

struct alignas(64) WakeFlag {
  std::atomic<std::uint32_t> signals;
  std::atomic<std::uint32_t> sleeping;
};

std::size_t wake_flags_bytes(int ranks) {
  return sizeof(WakeFlag) * static_cast<std::size_t>(ranks);
}

void add(float* __restrict target, const float* __restrict source, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) target[i] += source[i];
}

double seconds_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

class SharedMemory : public Transport {
 public:
  SharedMemory(void* memory, int rank, int ranks, double spin, std::function<bool()> may_poll)
      : Transport(rank, ranks),
        wake_flags_(static_cast<WakeFlag*>(memory)),
        rings_(reinterpret_cast<Ring*>(static_cast<char*>(memory) + wake_flags_bytes(ranks))),
        spin_(spin),
        may_poll_(std::move(may_poll)) {}

  std::int64_t send_some(int peer, const float* data, std::int64_t count) override {
    Ring& lane = ring(rank(), peer);
    std::int64_t sent = 0;
    while (sent < count) {
      const std::int64_t written = lane.written.load(std::memory_order_relaxed);
      const std::int64_t free = kCapacity - (written - lane.read.load(std::memory_order_acquire));
      const std::int64_t chunk = contiguous(written, std::min(free, count - sent));
      if (chunk == 0) break;
      std::memcpy(lane.data + written % kCapacity, data + sent,
                  static_cast<std::size_t>(chunk) * sizeof(float));
      lane.written.store(written + chunk, std::memory_order_release);
      wake(peer);
      sent += chunk;
    }
    return sent;
  }

  std::int64_t receive_some(int peer, float* target, std::int64_t count, Arrival arrival) override {
    Ring& lane = ring(peer, rank());
    std::int64_t got = 0;
    while (got < count) {
      const std::int64_t taken = lane.read.load(std::memory_order_relaxed);
      const std::int64_t available = lane.written.load(std::memory_order_acquire) - taken;
      const std::int64_t chunk = contiguous(taken, std::min(available, count - got));
      if (chunk == 0) break;
      const float* source = lane.data + taken % kCapacity;
      if (arrival == Arrival::add) {
        add(target + got, source, chunk);
      } else {
        std::memcpy(target + got, source, static_cast<std::size_t>(chunk) * sizeof(float));
      }
      lane.read.store(taken + chunk, std::memory_order_release);
      wake(peer);
      got += chunk;
    }
    return got;
  }

  void wait(const std::vector<int>& sending_to, const std::vector<int>& receiving_from) override {
    count_wait();
    const double begin = spin_ > 0 ? seconds_now() : 0;
    do {
      for (int poll = 0; poll < 64; ++poll) {
        if (ready(sending_to, receiving_from)) return;
        __builtin_ia32_pause();
      }
    } while (keeps_spinning(begin));
    WakeFlag& flag = wake_flags_[rank()];
    if (wake_requested_.exchange(false)) return;
    const std::uint32_t seen = flag.signals.load();
    flag.sleeping.store(1);
    if (!ready(sending_to, receiving_from) && !wake_requested_.load()) {
      const timespec second{1, 0};
      syscall(SYS_futex, &flag.signals, FUTEX_WAIT, seen, &second, nullptr, 0);
    }
    flag.sleeping.store(0);
    wake_requested_.store(false);
  }

  void wake_to_poll() override {
    if (wake_flags_[rank()].sleeping.load() != 0) wake();
  }

  void wake() override {
    wake_requested_.store(true);
    signal(rank());
  }

 private:
  bool keeps_spinning(double begin) const {
    if (spin_ == 0 || wake_requested_.load(std::memory_order_relaxed)) return false;
    const double spun = seconds_now() - begin;
    return spun < spin_ || (spun < 1 && may_poll_ && may_poll_());
  }

  Ring& ring(int source, int to) { return rings_[source * ranks() + to]; }

  static std::int64_t contiguous(std::int64_t position, std::int64_t count) {
    return std::min({count, kChunk, kCapacity - position % kCapacity});
  }

  bool ready(const std::vector<int>& sending_to, const std::vector<int>& receiving_from) {
    const auto filled = [this](int source, int to) {
      Ring& lane = ring(source, to);
      return lane.written.load(std::memory_order_acquire) - lane.read.load(std::memory_order_acquire);
    };
    return std::any_of(sending_to.begin(), sending_to.end(),
                       [&](int peer) { return filled(rank(), peer) < kCapacity; }) ||
           std::any_of(receiving_from.begin(), receiving_from.end(),
                       [&](int peer) { return filled(peer, rank()) > 0; });
  }

  /// The fence orders the store that the sleeper waits for before the load of `sleeping`.
  void wake(int peer) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (wake_flags_[peer].sleeping.load(std::memory_order_relaxed) != 0) signal(peer);
  }

  void signal(int rank) {
    wake_flags_[rank].signals.fetch_add(1);
    syscall(SYS_futex, &wake_flags_[rank].signals, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }

  std::atomic<bool> wake_requested_ = false;
  WakeFlag* wake_flags_;
  Ring* rings_;
  double spin_;
  std::function<bool()> may_poll_;
};

}  // namespace

std::size_t SharedMemoryTransport::bytes_for(int ranks) {
  return wake_flags_bytes(ranks) +
         sizeof(Ring) * static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks);
}

std::unique_ptr<Transport> shared_memory_transport(void* memory, int rank, int ranks, double spin_seconds,
                                                   std::function<bool()> may_poll) {
  return std::make_unique<SharedMemory>(memory, rank, ranks, spin_seconds, std::move(may_poll));
}

}  // namespace stepcast
