#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/timeline.hpp"
#include "sim/compute_clock.hpp"
#include "sim/network.hpp"
#include "strategies/message.hpp"
#include "strategies/program.hpp"

namespace stepcast {

/// An operation of the simulated world; `end` is in the coordinate of the worker's ComputeClock.
struct SimOperation : Operation {
  enum class Kind : char { compute, communication, load };
  Kind kind{};
  bool receives = false;
  Array into = Array::none;  ///< where the values go, of one that receives; none: where the sender had them
  /// Of each member: so much earlier than `end` it was done for that one [s]; none where all are alike.
  std::shared_ptr<const std::vector<double>> lags;
  std::shared_ptr<const std::vector<float>> values;  ///< of a message, in a simulation that learns
};

/// The collectives (or loads) of one group of workers: the n-th call of every worker is the same one. It
/// starts when the last worker has called, its stream is free and fewer than `in_flight` run; it ends for all
/// at once.
class CollectiveQueue {
 public:
  struct Options {
    bool load = false;  ///< input, which slows no compute
    int members = 1;    ///< of the group
    int streams = 1;    ///< the n-th collective runs in stream n mod streams, in order
    int in_flight = 1;  ///< at most so many at once
    std::function<int(int)>
        pattern;       ///< of the network for a collective of the plan; negative: takes no time
    int segments = 1;  ///< to cut a pattern's phases into
    std::string name;  ///< in the timeline
    int process = 0, first_track = 0;  ///< there
  };

  CollectiveQueue(SimNetwork& network, Options options);

  /// The next call of a program that stands for `members` workers with this clock.
  /// @param call  how many calls on this queue it made before
  void join(std::size_t call, int members, int collective, Bytes buffer,
            std::shared_ptr<SimOperation> operation, ComputeClock& clock);

  double busy_seconds() const { return busy_seconds_; }  ///< sum of durations, start to end
  Timeline* timeline = nullptr;
  void show_on(int process, int first_track);

 private:
  struct Waiting {
    std::shared_ptr<SimOperation> operation;
    ComputeClock* clock;
  };
  struct Collective {
    int number;  ///< of the plan
    Bytes buffer;
    int joined = 0;
    bool started = false, finished = false;
    std::vector<Waiting> waiting;
  };

  void start_ready();
  void start(std::size_t index);
  void slow_down(const Collective& collective, int begun_or_ended);
  void finish(std::size_t index, double started);
  void draw(std::size_t index, int stream, double started);

  SimNetwork& network_;
  Options options_;
  std::deque<Collective> collectives_;  ///< those not finished and all after them
  std::size_t first_ = 0;               ///< number of collectives_.front()
  std::vector<bool> stream_busy_;
  int running_ = 0;
  double busy_seconds_ = 0;
};

}  // namespace stepcast
