#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "sim/callback.hpp"
#include "sim/simgrid/simgrid_platform.hpp"

namespace simgrid::s4u {
class Activity;
}

namespace stepcast {

/// The part of SimGrid that is used: a platform, flows that share its links max-min fairly, a clock and
/// timers. A process can have one object of this class at a time. SimGrid 3.32 keeps its clock, configuration
/// and callbacks from one engine to the next: the destructor sets the clock back, and the others are always
/// equal.
class SimGridFlows {
 public:
  /// @param ended  called at the end of every flow, with the `done` callback that was passed to `start`
  SimGridFlows(const FlowLinks& links, std::function<void(Callback&)> ended);
  ~SimGridFlows();
  SimGridFlows(const SimGridFlows&) = delete;
  SimGridFlows& operator=(const SimGridFlows&) = delete;

  double clock() const;
  std::int64_t active_flows() const { return active_flows_; }
  /// Starts a flow that does not end at once.
  void start(const FlowRoute& route, Bytes size, Callback done);
  /// True for a flow over no links or of less than 1/2048 byte, which SimGrid would never end.
  static bool ends_at_once(const FlowRoute& route, Bytes size);
  /// Sets a timer. Timers are never removed, because SimGrid 3.32 crashes when one that has fired is removed.
  /// The order of timers of equal date is unspecified.
  void at(double date, std::function<void()> callback);
  void run();  ///< Runs until no flow and no timer is left.

 private:
  struct Parts;
  void complete(const simgrid::s4u::Activity& activity);

  std::unique_ptr<Parts> parts_;
  std::function<void(Callback&)> ended_;
  std::int64_t active_flows_ = 0;
};

/// True if the next simulation should have another process: a SimGridFlows of this one ended in the middle of
/// its run, or there have been many.
bool simgrid_is_used_up();

}  // namespace stepcast
