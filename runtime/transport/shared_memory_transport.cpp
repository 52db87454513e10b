#include "runtime/transport/shared_memory_transport.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>

namespace stepcast {

double seconds_now() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

struct alignas(64) WakeFlags::Flag {
  std::atomic<std::uint32_t> signals;
  std::atomic<std::uint32_t> sleeping;
};

std::size_t WakeFlags::bytes_for(int ranks) {
  return sizeof(Flag) * ranks;
}

WakeFlags::WakeFlags(void* memory, RankId rank) : flags_(static_cast<Flag*>(memory)), rank_(rank) {}

bool WakeFlags::sleep(const std::function<bool()>& ready, double seconds) {
  Flag& flag = flags_[rank_.index()];
  if (wake_requested_.exchange(false)) return true;
  const std::uint32_t seen = flag.signals.load();
  bool timed_out = false;
  flag.sleeping.store(1);
  if (!ready() && !wake_requested_.load()) {
    const double whole = std::floor(seconds);
    const timespec limit{static_cast<time_t>(whole), static_cast<long>(1e9 * (seconds - whole))};
    timed_out =
        syscall(SYS_futex, &flag.signals, FUTEX_WAIT, seen, &limit, nullptr, 0) != 0 && errno == ETIMEDOUT;
  }
  flag.sleeping.store(0);
  return wake_requested_.exchange(false) || !timed_out;
}

/// The fence orders the store that the sleeper waits for before the load of `sleeping`.
void WakeFlags::wake_sleeping(RankId rank) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (flags_[rank.index()].sleeping.load(std::memory_order_relaxed) != 0) signal(rank);
}

void WakeFlags::wake() {
  wake_requested_.store(true);
  signal(rank_);
}

bool WakeFlags::is_sleeping() const {
  return flags_[rank_.index()].sleeping.load() != 0;
}

void WakeFlags::signal(RankId rank) {
  flags_[rank.index()].signals.fetch_add(1);
  syscall(SYS_futex, &flags_[rank.index()].signals, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

namespace {

constexpr std::int64_t kChunk = 8192;  // floats that are written or read before the peer is woken

/// The beginning of a ring; its floats follow.
struct alignas(64) Ring {
  alignas(64) std::atomic<std::int64_t> written;
  alignas(64) std::atomic<std::int64_t> read;

  float* data() { return reinterpret_cast<float*>(this + 1); }
  static std::size_t bytes(std::int64_t capacity) { return sizeof(Ring) + sizeof(float) * capacity; }
};

void add(float* __restrict target, const float* __restrict source, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) target[i] += source[i];
}

class SharedMemory : public Transport {
 public:
  SharedMemory(const RingBuffers& memory, RankId rank, int ranks, double spin, std::function<bool()> may_poll)
      : Transport(rank, ranks),
        wake_flags_(memory.start, rank),
        rings_(static_cast<char*>(memory.start) + WakeFlags::bytes_for(ranks)),
        capacity_(memory.ring),
        spin_(spin),
        may_poll_(std::move(may_poll)) {}

  std::int64_t send_some(RankId peer, const float* data, std::int64_t count) override {
    Ring& lane = ring(rank(), peer);
    std::int64_t sent = 0;
    while (sent < count) {
      const std::int64_t written = lane.written.load(std::memory_order_relaxed);
      const std::int64_t free = capacity_ - (written - lane.read.load(std::memory_order_acquire));
      const std::int64_t chunk = contiguous(written, std::min(free, count - sent));
      if (chunk == 0) break;
      std::memcpy(lane.data() + written % capacity_, data + sent, chunk * sizeof(float));
      lane.written.store(written + chunk, std::memory_order_release);
      wake_flags_.wake_sleeping(peer);
      sent += chunk;
    }
    return sent;
  }

  std::int64_t receive_some(RankId peer, float* target, std::int64_t count, OnReceive on_receive) override {
    Ring& lane = ring(peer, rank());
    std::int64_t got = 0;
    while (got < count) {
      const std::int64_t taken = lane.read.load(std::memory_order_relaxed);
      const std::int64_t available = lane.written.load(std::memory_order_acquire) - taken;
      const std::int64_t chunk = contiguous(taken, std::min(available, count - got));
      if (chunk == 0) break;
      const float* source = lane.data() + taken % capacity_;
      if (on_receive == OnReceive::reduce) {
        add(target + got, source, chunk);
      } else {
        std::memcpy(target + got, source, chunk * sizeof(float));
      }
      lane.read.store(taken + chunk, std::memory_order_release);
      wake_flags_.wake_sleeping(peer);
      got += chunk;
    }
    return got;
  }

  void wait(const std::vector<RankId>& sending_to, const std::vector<RankId>& receiving_from) override {
    count_wait();
    const double begin = spin_ > 0 ? seconds_now() : 0;
    do {
      for (int poll = 0; poll < 64; ++poll) {
        if (ready(sending_to, receiving_from)) return;
        __builtin_ia32_pause();
      }
    } while (keeps_spinning(begin));
    wake_flags_.sleep([&] { return ready(sending_to, receiving_from); }, 1);
  }

  void wake_to_poll() override {
    if (wake_flags_.is_sleeping()) wake();
  }

  void wake() override { wake_flags_.wake(); }

 private:
  bool keeps_spinning(double begin) const {
    if (spin_ == 0 || wake_flags_.is_wake_requested()) return false;
    const double spun = seconds_now() - begin;
    return spun < spin_ || (spun < 1 && may_poll_ && may_poll_());
  }

  Ring& ring(RankId source, RankId to) {
    return *reinterpret_cast<Ring*>(rings_ +
                                    Ring::bytes(capacity_) * (source.index() * ranks() + to.index()));
  }

  std::int64_t contiguous(std::int64_t position, std::int64_t count) const {
    return std::min({count, kChunk, capacity_ - position % capacity_});
  }

  bool ready(const std::vector<RankId>& sending_to, const std::vector<RankId>& receiving_from) {
    const auto filled = [this](RankId source, RankId to) {
      Ring& lane = ring(source, to);
      return lane.written.load(std::memory_order_acquire) - lane.read.load(std::memory_order_acquire);
    };
    return std::any_of(sending_to.begin(), sending_to.end(),
                       [&](RankId peer) { return filled(rank(), peer) < capacity_; }) ||
           std::any_of(receiving_from.begin(), receiving_from.end(),
                       [&](RankId peer) { return filled(peer, rank()) > 0; });
  }

  WakeFlags wake_flags_;
  char* rings_;
  std::int64_t capacity_;  ///< floats of a ring
  double spin_;
  std::function<bool()> may_poll_;
};

}  // namespace

std::size_t SharedMemoryTransport::bytes_for(int ranks, std::int64_t ring) {
  return WakeFlags::bytes_for(ranks) + Ring::bytes(ring) * ranks * ranks;
}

std::unique_ptr<Transport> shared_memory_transport(const RingBuffers& memory, RankId rank, int ranks,
                                                   double spin_seconds, std::function<bool()> may_poll) {
  return std::make_unique<SharedMemory>(memory, rank, ranks, spin_seconds, std::move(may_poll));
}

}  // namespace stepcast
