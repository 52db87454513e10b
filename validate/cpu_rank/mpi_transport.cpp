#include "validate/cpu_rank/mpi_transport.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "runtime/transport/shared_memory_transport.hpp"

namespace stepcast {
namespace {

// Floats of the longest MPI message. With MPI's header it is below the eager limit of Open MPI's TCP (64
// KiB), so that no segment waits for an answer of its receiver.
constexpr std::int64_t kSegment = 15360;
constexpr std::size_t kSegments = 8;  // in flight to a peer, and as many receives posted from it
constexpr int kTag = 1;

constexpr double kShortestPause = 20e-6, kLongestPause = 1e-3;  // between tests of `wait` [s]
constexpr double kPauseShare = 1.0 / 32;                        // of the time already waited

// Longest sleeps of a rank that its peers wake [s]. They end only what no peer knows of, such as a message
// that this rank's own calls must push further because the kernel lets no process read another's memory.
constexpr double kSleepWhileSending = 1e-3, kSleep = 10e-3;

/// One MPI message with its memory, which the system maps when it is first used.
struct Segment {
  std::unique_ptr<float[]> data{new float[kSegment]};
  MPI_Request request = MPI_REQUEST_NULL;
  std::int64_t floats = 0;  ///< received: length, once it is complete
  std::int64_t taken = 0;   ///< received: floats that `receive_some` has returned

  bool test(MPI_Status* status = MPI_STATUS_IGNORE) {
    int done = 0;
    check_mpi(MPI_Test(&request, &done, status), "MPI_Test");
    return done != 0;
  }
};

/// The segments to or from one peer, used in turn.
struct Segments {
  std::array<Segment, kSegments> all;
  std::size_t next = 0;

  Segment& current() { return all[next]; }
  void advance() { next = (next + 1) % kSegments; }
};

class MpiTransport : public Transport {
 public:
  MpiTransport(MPI_Comm communicator, RankId rank, int ranks, MpiWaiting waiting)
      : Transport(rank, ranks),
        communicator_(communicator),
        spin_(waiting.spin_seconds),
        may_poll_(std::move(waiting.may_poll)),
        outgoing_(ranks),
        incoming_(ranks) {
    if (waiting.wake_flags != nullptr) wake_flags_.emplace(waiting.wake_flags, rank);
    for (int number = 0; number < ranks; ++number) {
      const RankId peer(number);
      if (peer == rank) continue;
      for (Segment& one : incoming_[peer].all) post_receive(peer, one);
    }
  }

  /// Frees nothing that all ranks would have to free together, because another rank may have failed.
  ~MpiTransport() override {
    for (Segments& peer : incoming_) {
      for (Segment& one : peer.all) {
        if (one.request == MPI_REQUEST_NULL) continue;
        MPI_Cancel(&one.request);
        MPI_Wait(&one.request, MPI_STATUS_IGNORE);
      }
    }
    for (Segments& peer : outgoing_) {
      for (Segment& one : peer.all) {
        int done = 0;
        MPI_Test(&one.request, &done, MPI_STATUS_IGNORE);
        if (done == 0) static_cast<void>(one.data.release());  // MPI may still read it
      }
    }
  }

  std::int64_t send_some(RankId peer, const float* data, std::int64_t count) override {
    Segments& segments = outgoing_[peer];
    std::int64_t sent = 0;
    while (sent < count && segments.current().test()) {
      Segment& one = segments.current();
      const std::int64_t floats = std::min(kSegment, count - sent);
      std::memcpy(one.data.get(), data + sent, floats * sizeof(float));
      check_mpi(MPI_Isend(one.data.get(), floats, MPI_FLOAT, peer.value, kTag, communicator_, &one.request),
                "MPI_Isend");
      if (wake_flags_) wake_flags_->wake_sleeping(peer);
      segments.advance();
      sent += floats;
    }
    return sent;
  }

  std::int64_t receive_some(RankId peer, float* target, std::int64_t count, OnReceive on_receive) override {
    std::int64_t got = 0;
    while (got < count && has_arrived(peer)) {
      Segments& segments = incoming_[peer];
      Segment& one = segments.current();
      const std::int64_t floats = std::min(one.floats - one.taken, count - got);
      const float* const source = one.data.get() + one.taken;
      if (on_receive == OnReceive::reduce) {
        std::transform(source, source + floats, target + got, target + got, std::plus<>());
      } else {
        std::memcpy(target + got, source, floats * sizeof(float));
      }
      got += floats;
      one.taken += floats;
      if (one.taken < one.floats) continue;
      post_receive(peer, one);
      if (wake_flags_) wake_flags_->wake_sleeping(peer);  // its send of this segment is complete
      segments.advance();
    }
    return got;
  }

  void wait(const std::vector<RankId>& sending_to, const std::vector<RankId>& receiving_from) override {
    count_wait();
    const double begin = seconds_now();
    do {
      for (int poll = 0; poll < 8; ++poll) {
        if (ready(sending_to, receiving_from)) return;
      }
    } while (keeps_spinning(begin));
    if (wake_flags_) {
      const auto ready_now = [&] { return ready(sending_to, receiving_from); };
      while (!wake_flags_->sleep(ready_now, sending_to.empty() ? kSleep : kSleepWhileSending)) {
        if (ready_now() || seconds_now() - begin > 1) return;
      }
      return;
    }
    static_cast<void>(prctl(PR_SET_TIMERSLACK, 1));  // pauses of this thread end in time
    for (double waited = 0; waited < 1 && !ready(sending_to, receiving_from);) {
      if (paused(std::clamp(waited * kPauseShare, kShortestPause, kLongestPause))) return;
      waited = seconds_now() - begin;
    }
  }

  void wake_to_poll() override {
    if (!wake_flags_ || wake_flags_->is_sleeping()) wake();
  }

  void wake() override {
    if (wake_flags_) return wake_flags_->wake();
    {
      const std::lock_guard lock(mutex_);
      wake_requested_ = true;
    }
    woken_.notify_one();
  }

 private:
  void post_receive(RankId peer, Segment& one) {
    one.floats = one.taken = 0;
    check_mpi(MPI_Irecv(one.data.get(), kSegment, MPI_FLOAT, peer.value, kTag, communicator_, &one.request),
              "MPI_Irecv");
  }

  /// MPI keeps the order of the messages of a pair, so the oldest posted receive is complete first.
  bool has_arrived(RankId peer) {
    Segment& one = incoming_[peer].current();
    if (one.floats > 0) return true;
    MPI_Status status{};
    if (!one.test(&status)) return false;
    int floats = 0;
    check_mpi(MPI_Get_count(&status, MPI_FLOAT, &floats), "MPI_Get_count");
    one.floats = floats;
    return true;
  }

  bool ready(const std::vector<RankId>& sending_to, const std::vector<RankId>& receiving_from) {
    return std::ranges::any_of(receiving_from, [this](RankId peer) { return has_arrived(peer); }) ||
           std::ranges::any_of(sending_to, [this](RankId peer) { return outgoing_[peer].current().test(); });
  }

  bool keeps_spinning(double begin) const {
    if (spin_ == 0 || (wake_flags_ ? wake_flags_->is_wake_requested() : wake_requested_.load())) return false;
    const double spun = seconds_now() - begin;
    return spun < spin_ || (spun < 1 && may_poll_ && may_poll_());
  }

  /// Pauses this thread, so that other threads get its core. @return whether `wake` ended or forbade it
  bool paused(double seconds) {
    std::unique_lock lock(mutex_);
    woken_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return wake_requested_.load(); });
    return wake_requested_.exchange(false);
  }

  MPI_Comm communicator_;
  double spin_;
  std::function<bool()> may_poll_;
  IdTable<RankId, Segments> outgoing_, incoming_;  ///< per peer
  std::optional<WakeFlags> wake_flags_;
  std::mutex mutex_;  // this and the two below: without wake flags
  std::condition_variable woken_;
  std::atomic<bool> wake_requested_ = false;
};

}  // namespace

void check_mpi(int status, const char* call) {
  if (status == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(status, text, &length);
  throw std::runtime_error(fmt::format("{} failed: {}", call, text));
}

std::unique_ptr<Transport> mpi_transport(MpiWaiting waiting) {
  MPI_Comm communicator = MPI_COMM_NULL;
  int rank = 0, ranks = 0, provided = 0;
  check_mpi(MPI_Query_thread(&provided), "MPI_Query_thread");
  if (provided < MPI_THREAD_MULTIPLE) throw std::runtime_error("this MPI has no MPI_THREAD_MULTIPLE");
  check_mpi(MPI_Comm_dup(MPI_COMM_WORLD, &communicator), "MPI_Comm_dup");
  check_mpi(MPI_Comm_rank(communicator, &rank), "MPI_Comm_rank");
  check_mpi(MPI_Comm_size(communicator, &ranks), "MPI_Comm_size");
  return std::make_unique<MpiTransport>(communicator, RankId(rank), ranks, std::move(waiting));
}

MPI_Comm MpiAllReduce::communicator_of(const std::vector<RankId>& ranks) {
  const auto [found, is_new] = communicators_.try_emplace(ranks, MPI_COMM_NULL);
  if (!is_new) return found->second;
  MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  check_mpi(MPI_Comm_group(MPI_COMM_WORLD, &world), "MPI_Comm_group");
  std::vector<int> numbers;
  for (const RankId rank : ranks) numbers.push_back(rank.value);
  check_mpi(MPI_Group_incl(world, numbers.size(), numbers.data(), &group), "MPI_Group_incl");
  check_mpi(MPI_Comm_create_group(MPI_COMM_WORLD, group, kTag, &found->second), "MPI_Comm_create_group");
  MPI_Group_free(&group);
  MPI_Group_free(&world);
  return found->second;
}

/// The blocking call, because this thread has nothing else to do meanwhile.
void MpiAllReduce::operator()(std::span<float> values, const std::vector<RankId>& ranks) {
  if (ranks.size() < 2) return;
  const MPI_Comm communicator = communicator_of(ranks);
  constexpr std::size_t kMost = std::numeric_limits<int>::max();
  for (std::size_t at = 0; at < values.size(); at += kMost) {
    const std::size_t count = std::min(kMost, values.size() - at);
    check_mpi(MPI_Allreduce(MPI_IN_PLACE, values.data() + at, count, MPI_FLOAT, MPI_SUM, communicator),
              "MPI_Allreduce");
  }
}

}  // namespace stepcast
