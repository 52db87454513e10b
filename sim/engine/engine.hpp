#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <queue>
#include <vector>

#include "core/typed_numbers.hpp"
#include "sim/callback.hpp"
#include "sim/engine/event_queue.hpp"
#include "sim/simgrid/simgrid_flows.hpp"

namespace stepcast {

/// The simulated clock and SimGrid's links. Events wait in a queue, ordered by (date, sequence number);
/// SimGrid shares links among flows max-min fairly. While no flow is active, the clock advances from event to
/// event without SimGrid, because an event of SimGrid costs ten times as much; SimGrid's clock catches up
/// when the next flow starts. A process can have one engine that starts flows at a time (SimGridFlows says
/// why).
class Engine {
 public:
  using Callback = stepcast::Callback;

  /// @param links  the links of flows; without any, no flow can be started
  explicit Engine(FlowLinks links);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  double now() const { return now_; }  ///< Simulated time since the start [s].

  /// Calls `function` at `date` [s], or at the present date if `date` is past. Calls of equal date are made
  /// in the order in which they were requested.
  template <class Function>
  void at(double date, Function&& function) {
    const std::uint64_t slot = free_slot();
    callback(slot).set(std::forward<Function>(function));
    const std::uint64_t number = sequence_++;
    if (date > now_) {
      queue_.push({date, number << kSlotBits | slot});
    } else {
      due_.push(slot);
    }
    if (!running_) arm();
  }

  /// Moves `size` over all links of the route at once, then calls `done`. The flow has no latency: the caller
  /// waits for the latency with `at`.
  void start_flow(FlowRoute route, Bytes size, Callback done);

  /// Runs until no event and no flow is left. Rethrows the first exception that a callback threw.
  void run();

  std::uint64_t calls_of_at() const { return sequence_; }  ///< Number of calls of `at` so far.
  std::int64_t events() const { return events_; }
  std::int64_t flows() const { return flows_; }

 private:
  struct Waiting {
    FlowRoute route;
    Bytes size;
    Callback done;
  };

  static constexpr int kSlotBits = 24;  // low bits of an event's order: the slot of its callback
  static std::uint64_t slot_of(const Event& event) {
    return event.order & ((std::uint64_t{1} << kSlotBits) - 1);
  }
  static constexpr std::uint64_t kBlock = 256;  // callbacks of one allocation
  Callback& callback(std::uint64_t slot) { return callbacks_[slot / kBlock][slot % kBlock]; }
  std::uint64_t free_slot() {
    if (free_.empty()) add_slots();
    const std::uint64_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void add_slots();
  SimGridFlows& simgrid();
  void run_events();
  bool next_slot(std::uint64_t& slot);
  void start_waiting();
  void arm();
  void fire();
  void call(Callback& callback);

  FlowLinks links_;
  std::unique_ptr<SimGridFlows> simgrid_;  ///< created when the first flow starts
  double now_ = 0;
  EventQueue queue_;                ///< events that were requested before their date
  MonotoneRun<std::uint64_t> due_;  ///< slots of the events that were requested at the present date
  /// The events' callbacks, in blocks with stable addresses, so that each callback is called in place.
  std::vector<std::unique_ptr<Callback[]>> callbacks_;
  std::vector<std::uint64_t> free_;  ///< unused slots of callbacks_
  /// Dates of the SimGrid timers that are set, latest first; no date is set twice.
  std::vector<double> armed_;
  std::vector<Waiting> waiting_;  ///< flows that start when SimGrid's clock has caught up
  bool running_ = false;
  std::uint64_t sequence_ = 0;
  std::int64_t events_ = 0, flows_ = 0;
  std::exception_ptr error_;
};

/// Factors on compute, >= 1.
struct Slowdown {
  double collectives = 1;  ///< while a collective of the worker runs
  double messages = 1;     ///< while a message from or to the worker travels
  double loads = 1;        ///< while the worker's input loads
};

/// Progress of compute on devices that all slow down by the same factor while they communicate or load input.
///
/// `work(t)` = integral of the rate from 0 to t [s of undisturbed compute]. A worker's clocks are kept in
/// this coordinate, so that one change of rate moves all of them.
class WorkClock {
 public:
  WorkClock(Engine& engine, Slowdown slowdown) : engine_(engine), slowdown_(slowdown) {}

  double work_now() const { return work_ + (engine_.now() - since_) * rate_; }

  /// Calls `callback` when work_now() reaches `work`; calls of equal work are made in the order of the
  /// requests.
  template <class Function>
  void at_work(double work, Function&& callback) {
    if (std::max({slowdown_.collectives, slowdown_.messages, slowdown_.loads}) == 1)
      return engine_.at(work, std::forward<Function>(callback));  // work is time
    wait(work, std::forward<Function>(callback));
  }

  /// Report that a collective, a message or a load began (+1) or ended (-1). While any is active, compute
  /// runs at the rate 1 / slowdown; while several kinds are, the largest slowdown counts.
  void collective(int change);
  void message(int change);
  void load(int change);

 private:
  struct Waiting {
    double work;
    std::uint64_t sequence;
    Engine::Callback callback;
    bool operator>(const Waiting& other) const {
      return work != other.work ? work > other.work : sequence > other.sequence;
    }
  };

  void set_rate();
  void wait(double work, Engine::Callback callback);
  void arm();
  void fire(std::uint64_t generation);

  Engine& engine_;
  Slowdown slowdown_;
  double work_ = 0, since_ = 0, rate_ = 1;
  int collectives_ = 0, messages_ = 0, loads_ = 0;  ///< that are active
  std::uint64_t sequence_ = 0, generation_ = 0;
  double armed_work_ = -1;
  std::priority_queue<Waiting, std::vector<Waiting>, std::greater<>> waiting_;
};

}  // namespace stepcast
