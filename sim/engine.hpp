#pragma once

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <vector>

#include "core/callback.hpp"
#include "core/units.hpp"
#include "sim/event_queue.hpp"
#include "sim/simgrid_flows.hpp"

namespace stepcast {

/// The simulated clock and the links: own event queue ordered by (date, sequence), and flows that share links
/// max-min fairly by SimGrid. While no flow is under way the clock goes from event to event by itself;
/// SimGrid, whose clock takes ten times as long an event, catches up when the next flow starts. One engine a
/// process: SimGrid 3.32 keeps its clock and configuration from one to the next.
class Engine {
 public:
  using Callback = stepcast::Callback;

  explicit Engine(std::vector<BytesPerSecond> links);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  double now() const { return now_; }  ///< [s] since the start

  /// Calls `callback` at `date` (now, if it is past); calls of equal date come in the order in which they
  /// were asked for.
  template <class Function>
  void at(double date, Function&& function) {
    const std::uint64_t place = free_place();
    callback(place).set(std::forward<Function>(function));
    add({std::max(now_, date), sequence_++ << kPlaceBits | place});
  }

  /// Moves `size` over all of `links` at once (a link listed k times carries k times as much), then calls
  /// `done`. Latency is not counted: wait for it with `at`.
  void start_flow(const std::vector<int>& links, Bytes size, Callback done);

  /// Runs until nothing is left to happen. Rethrows the first exception that a callback threw.
  void run();

  std::uint64_t asked() const { return sequence_; }  ///< calls of `at` so far
  std::int64_t events() const { return events_; }
  std::int64_t flows() const { return flows_; }

 private:
  struct Waiting {
    std::vector<int> links;
    double units;
    Callback done;
  };

  static constexpr int kPlaceBits = 24;  // of an event's order, for the place of its callback
  static std::uint64_t place_of(const Event& event) {
    return event.order & ((std::uint64_t{1} << kPlaceBits) - 1);
  }
  static constexpr std::uint64_t kRow = 256;  // callbacks
  Callback& callback(std::uint64_t place) { return callbacks_[place / kRow][place % kRow]; }
  std::uint64_t free_place() {
    if (free_.empty()) add_places();
    const std::uint64_t place = free_.back();
    free_.pop_back();
    return place;
  }
  void add_places();
  void add(const Event& event);
  SimGridFlows& simgrid();
  void play_events();
  void start_waiting();
  void arm();
  void fire();
  void call(Callback& callback);

  std::vector<BytesPerSecond> links_;
  std::unique_ptr<SimGridFlows> simgrid_;  ///< made when the first flow starts
  double now_ = 0;
  EventQueue queue_;
  /// Of the events, in rows that never move, so that each is called where it lies.
  std::vector<std::unique_ptr<Callback[]>> callbacks_;
  std::vector<std::uint64_t> free_;  ///< places in callbacks_
  /// Dates of the SimGrid timers that are set, latest first; never set twice for a date.
  std::vector<double> armed_;
  std::vector<Waiting> waiting_;  ///< flows that start when SimGrid's clock has caught up
  bool playing_ = false;
  std::uint64_t sequence_ = 0;
  std::int64_t events_ = 0, flows_ = 0;
  std::exception_ptr error_;
};

}  // namespace stepcast
