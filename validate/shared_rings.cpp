#include "validate/shared_rings.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace stepcast {
namespace {

constexpr std::int64_t kCapacity = 65536;  // floats of a ring; two rings stay in a core's second-level cache
constexpr std::int64_t kPiece = 8192;      // floats until the other side is told

struct alignas(64) Ring {
  alignas(64) std::atomic<std::int64_t> written;
  alignas(64) std::atomic<std::int64_t> taken;
  alignas(64) float data[kCapacity];
};

struct alignas(64) Bell {
  std::atomic<std::uint32_t> rings;
  std::atomic<std::uint32_t> sleeping;
};

std::size_t bells_bytes(int ranks) {
  return sizeof(Bell) * static_cast<std::size_t>(ranks);
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
  SharedMemory(void* memory, int rank, int ranks, double spin, std::function<bool()> at_leisure)
      : Transport(rank, ranks),
        bells_(static_cast<Bell*>(memory)),
        rings_(reinterpret_cast<Ring*>(static_cast<char*>(memory) + bells_bytes(ranks))),
        spin_(spin),
        at_leisure_(std::move(at_leisure)) {}

  std::int64_t send_some(int peer, const float* data, std::int64_t count) override {
    Ring& way = ring(rank(), peer);
    std::int64_t sent = 0;
    while (sent < count) {
      const std::int64_t written = way.written.load(std::memory_order_relaxed);
      const std::int64_t room = kCapacity - (written - way.taken.load(std::memory_order_acquire));
      const std::int64_t piece = contiguous(written, std::min(room, count - sent));
      if (piece == 0) break;
      std::memcpy(way.data + written % kCapacity, data + sent,
                  static_cast<std::size_t>(piece) * sizeof(float));
      way.written.store(written + piece, std::memory_order_release);
      wake(peer);
      sent += piece;
    }
    return sent;
  }

  std::int64_t receive_some(int peer, float* target, std::int64_t count, Arrival arrival) override {
    Ring& way = ring(peer, rank());
    std::int64_t got = 0;
    while (got < count) {
      const std::int64_t taken = way.taken.load(std::memory_order_relaxed);
      const std::int64_t there = way.written.load(std::memory_order_acquire) - taken;
      const std::int64_t piece = contiguous(taken, std::min(there, count - got));
      if (piece == 0) break;
      const float* from = way.data + taken % kCapacity;
      if (arrival == Arrival::add) {
        add(target + got, from, piece);
      } else {
        std::memcpy(target + got, from, static_cast<std::size_t>(piece) * sizeof(float));
      }
      way.taken.store(taken + piece, std::memory_order_release);
      wake(peer);
      got += piece;
    }
    return got;
  }

  void wait(const std::vector<int>& sending_to, const std::vector<int>& receiving_from) override {
    waited();
    const double begin = spin_ > 0 ? seconds_now() : 0;
    do {
      for (int turn = 0; turn < 64; ++turn) {
        if (ready(sending_to, receiving_from)) return;
        __builtin_ia32_pause();
      }
    } while (spins_on(begin));
    Bell& bell = bells_[rank()];
    if (woken_.exchange(false)) return;
    const std::uint32_t heard = bell.rings.load();
    bell.sleeping.store(1);
    if (!ready(sending_to, receiving_from) && !woken_.load()) {
      const timespec second{1, 0};
      syscall(SYS_futex, &bell.rings, FUTEX_WAIT, heard, &second, nullptr, 0);
    }
    bell.sleeping.store(0);
    woken_.store(false);
  }

  void hurry() override {
    if (bells_[rank()].sleeping.load() != 0) wake();
  }

  void wake() override {
    woken_.store(true);
    ring_bell(rank());
  }

 private:
  bool spins_on(double begin) const {
    if (spin_ == 0 || woken_.load(std::memory_order_relaxed)) return false;
    const double spun = seconds_now() - begin;
    return spun < spin_ || (spun < 1 && at_leisure_ && at_leisure_());
  }

  Ring& ring(int from, int to) { return rings_[from * ranks() + to]; }

  static std::int64_t contiguous(std::int64_t position, std::int64_t count) {
    return std::min({count, kPiece, kCapacity - position % kCapacity});
  }

  bool ready(const std::vector<int>& sending_to, const std::vector<int>& receiving_from) {
    const auto filled = [this](int from, int to) {
      Ring& way = ring(from, to);
      return way.written.load(std::memory_order_acquire) - way.taken.load(std::memory_order_acquire);
    };
    return std::any_of(sending_to.begin(), sending_to.end(),
                       [&](int peer) { return filled(rank(), peer) < kCapacity; }) ||
           std::any_of(receiving_from.begin(), receiving_from.end(),
                       [&](int peer) { return filled(peer, rank()) > 0; });
  }

  /// The fence keeps the look at `sleeping` behind the store that the sleeper looks for.
  void wake(int peer) {
    std::atomic_thread_fence(std::memory_order_seq_cst);
    if (bells_[peer].sleeping.load(std::memory_order_relaxed) != 0) ring_bell(peer);
  }

  void ring_bell(int who) {
    bells_[who].rings.fetch_add(1);
    syscall(SYS_futex, &bells_[who].rings, FUTEX_WAKE, 1, nullptr, nullptr, 0);
  }

  std::atomic<bool> woken_ = false;
  Bell* bells_;
  Ring* rings_;
  double spin_;
  std::function<bool()> at_leisure_;
};

}  // namespace

std::size_t SharedRings::bytes_for(int ranks) {
  return bells_bytes(ranks) +
         sizeof(Ring) * static_cast<std::size_t>(ranks) * static_cast<std::size_t>(ranks);
}

std::unique_ptr<Transport> shared_memory_transport(void* memory, int rank, int ranks, double spin_seconds,
                                                   std::function<bool()> at_leisure) {
  return std::make_unique<SharedMemory>(memory, rank, ranks, spin_seconds, std::move(at_leisure));
}

}  // namespace stepcast
