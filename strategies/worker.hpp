#pragma once

#include "core/units.hpp"
#include "strategies/arrays.hpp"
#include "strategies/program.hpp"
#include "strategies/workload.hpp"

namespace stepcast {

constexpr int kAnyone = -1;

/// Arithmetic on a worker's own arrays: the simulated world takes `duration`, a world with memory calls
/// `run`.
struct LocalWork {
  const char* name = "";
  Seconds duration;
  Arithmetic run;
};

/// What a strategy sees of the world it runs in, simulated or real. It knows no clock, no SimGrid and no MPI.
/// `start_...` returns at once; the other calls are awaited. Where one program stands for several equal
/// workers
/// ("members"), each call is made by all of them.
class Worker : private Waiter {
 public:
  virtual const Workload& workload() const = 0;

  virtual Pending start_compute(Work pass, LayerRange layers) = 0;
  virtual Pending start_local(const LocalWork& work) = 0;
  /// Collective number `index` of the plan, with the workers of its communicator. The n-th call of each of
  /// them on a communicator is the same collective.
  virtual Pending start_collective(int index) = 0;
  /// To a role of the plan: member i sends to its member i, or to its only one. Done when it has arrived.
  virtual Pending start_send(int role, const Message& message) = 0;
  /// The next message with this tag, in order of arrival, from one role or from anyone.
  /// @param into  where its elements go; none: where the sender had them
  virtual Pending start_receive(int tag, int role = kAnyone, Array into = Array::none) = 0;
  /// Brings the next micro-batch from storage to the device.
  virtual Pending start_load(Bytes input) = 0;
  /// The device does nothing for so long: a host that waits for it, input work, an optimizer on the host.
  virtual Pending start_pause(Seconds duration) = 0;

  /// Arithmetic whose time is counted nowhere: copies and sums beside what costs.
  virtual void calculate(const Arithmetic& run) = 0;

  virtual void end_step() = 0;
  /// Books the time since the last mark of this program (or its start) under a name, and returns it [s].
  virtual double mark(const char* phase) = 0;
  /// Books a number that the strategy's own columns are made of, such as a staleness.
  virtual void record(const char* what, double value) = 0;

  Finished finished(Pending operation) { return Finished(std::move(operation), *this); }
  Finished forward() { return finished(start_compute(Work::forward, all_layers())); }
  Finished forward(LayerRange layers) { return finished(start_compute(Work::forward, layers)); }
  Finished backward() { return finished(start_compute(Work::backward, all_layers())); }
  Finished backward(LayerRange layers) { return finished(start_compute(Work::backward, layers)); }
  Finished optimizer_step() { return finished(start_compute(Work::update, all_layers())); }
  Finished local(const LocalWork& work) { return finished(start_local(work)); }
  Finished collective(int index) { return finished(start_collective(index)); }
  Finished send(int role, const Message& message) { return finished(start_send(role, message)); }
  Finished receive(int tag, int role = kAnyone, Array into = Array::none) {
    return finished(start_receive(tag, role, into));
  }
  Finished load(Bytes input) { return finished(start_load(input)); }
  Finished pause(Seconds duration) { return finished(start_pause(duration)); }

  LayerRange all_layers() const { return {0, workload().layers()}; }
};

}  // namespace stepcast
