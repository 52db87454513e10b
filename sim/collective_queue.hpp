#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "core/timeline.hpp"
#include "sim/compute_clock.hpp"
#include "sim/network.hpp"
#include "strategies/program.hpp"

namespace stepcast {

/// An operation of the simulated world; `end` is in the coordinate of ComputeClock.
struct SimOperation : Operation {
  enum class Kind { compute, all_reduce, load };
  Kind kind{};
};

/// The collectives of one group of workers: the n-th call of every worker is the same one. It starts when the
/// last worker has called, its stream is free and fewer than `in_flight` run; it ends for all at once.
class CollectiveQueue {
 public:
  struct Options {
    SimOperation::Kind kind{};
    int members = 1;                    ///< of the group
    int streams = 1;                    ///< the n-th collective runs in stream n mod streams, in order
    int in_flight = 1;                  ///< at most so many at once
    std::function<int(Bytes)> pattern;  ///< of the network; negative: takes no time
    int segments = 1;                   ///< to cut a pattern's phases into
  };

  CollectiveQueue(SimNetwork& network, ComputeClock& clock, Options options);

  /// The `call`-th call of a program that stands for `members` workers.
  Pending join(std::size_t call, int members, Bytes buffer);

  double busy_seconds() const { return busy_seconds_; }  ///< sum of durations, start to end
  Timeline* timeline = nullptr;  ///< spans go to process 0, tracks from `first_track` on
  int first_track = 0;

 private:
  struct Collective {
    Bytes buffer;
    int joined = 0;
    bool started = false;
    std::vector<std::shared_ptr<SimOperation>> waiting;
  };

  void start_ready();
  void start(std::size_t index);
  void finish(std::size_t index, double started);

  SimNetwork& network_;
  ComputeClock& clock_;
  Options options_;
  std::deque<Collective> collectives_;  ///< those not finished and all after them
  std::size_t first_ = 0;               ///< number of collectives_.front()
  std::vector<bool> stream_busy_;
  int running_ = 0;
  double busy_seconds_ = 0;
};

}  // namespace stepcast
