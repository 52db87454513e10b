#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "core/timeline.hpp"
#include "sim/engine/engine.hpp"
#include "sim/patterns/sim_network.hpp"
#include "sim/program_log.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/program/program.hpp"

namespace stepcast {

/// The effect of an operation on values in a simulation that learns.
struct MovedValues {
  std::vector<float> content;  ///< of a message
  std::function<void()>
      on_waited;  ///< of a collective: called when its program has waited for it; may be empty
};

/// The properties of an operation that a timeline or a log shows.
struct OperationRecord {
  std::vector<int> ranks;           ///< the recorded ranks among those that its program stands for
  double issued = 0;                ///< when the program started it [s]
  double started = 0, arrived = 0;  ///< of a message, collective or load [s]
  std::int64_t number = 0;          ///< of a message: unique in the run
  int from = -1, to = -1;           ///< of a message: first rank of its sender and of its receiver
  const char* awaited = "";         ///< what a program that waits for it waits for
  ProgramLog* log = nullptr;        ///< of its program; null: none
  std::int64_t logged = -1;         ///< index in the log
};

/// An operation of a simulated worker; `end` is in the coordinate of the worker's WorkClock.
struct SimOperation : Operation {
  enum class Kind : char { compute, communication, load };
  Kind kind{};
  bool receives = false;
  Array into = Array::none;  ///< array that receives the values of a message; none: the sender's array
  /// For each member, the time from its completion of the operation to `end` [s]. Null if all members
  /// complete together.
  std::shared_ptr<const std::vector<double>> lags;
  std::shared_ptr<OperationRecord> record;    ///< null: neither a timeline nor a log shows the operation
  std::shared_ptr<const MovedValues> values;  ///< in a simulation that learns; else null
};

/// The collectives (or input loads) of one group of workers. The n-th call of every worker is the same
/// collective. It starts when the last worker has called it and its wait is over, its stream is free and
/// fewer than `in_flight` are running; it ends at the same date for all workers.
class CollectiveQueue {
 public:
  struct Options {
    bool load = false;  ///< the queue holds input loads
    int members = 1;    ///< number of workers of the group
    int streams = 1;    ///< the n-th collective runs in stream n mod streams, in order
    int in_flight = 1;  ///< largest number of collectives that run at the same time
    /// Returns the network's pattern for a collective of the plan; none if the collective takes no time.
    std::function<PatternId(CollectiveId)> pattern;
    /// Time from the last call of a collective to its start; null: none.
    std::function<Seconds(CollectiveId)> wait;
    int segments = 1;      ///< number of segments of a phase
    int first_stream = 0;  ///< in the timeline
  };

  CollectiveQueue(SimNetwork& network, Options options);

  /// Enters the next call of a program that stands for `members` workers with this clock.
  /// @param call  number of earlier calls that the program made on this queue
  void join(std::size_t call, int members, CollectiveId collective, Bytes buffer,
            std::shared_ptr<SimOperation> operation, WorkClock& clock);

  double busy_seconds() const { return busy_seconds_; }  ///< Sum of the durations from start to end [s].
  Timeline* timeline = nullptr;                          ///< null: nothing is recorded

 private:
  struct Waiting {
    std::shared_ptr<SimOperation> operation;
    WorkClock* clock;
  };
  struct Collective {
    CollectiveId id;
    Bytes buffer;
    int joined = 0;
    bool ready = false, started = false, finished = false;
    std::vector<Waiting> waiting;
  };

  void all_joined(std::size_t index);
  void start_ready();
  void start(std::size_t index);
  void slow_down(const Collective& collective, int change);
  void finish(std::size_t index, double started);
  void add_spans(const Collective& collective, int stream, double started);

  SimNetwork& network_;
  Options options_;
  std::deque<Collective> collectives_;  ///< from the first unfinished one
  std::size_t first_ = 0;               ///< index of collectives_.front() among all calls
  std::vector<bool> stream_busy_;
  int running_ = 0;
  double busy_seconds_ = 0;
};

}  // namespace stepcast
