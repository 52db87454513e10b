#pragma once

#include "core/units.hpp"
#include "strategies/program.hpp"
#include "strategies/workload.hpp"

namespace stepcast {

/// What a strategy sees of the world it runs in, simulated or real. It knows no clock, no SimGrid and no MPI.
/// `start_...` returns at once; the other calls are awaited.
class Worker : private Waiter {
 public:
  virtual const Workload& workload() const = 0;

  virtual Pending start_compute(Work pass, LayerRange layers) = 0;
  /// Sums `buffer` over all workers. The n-th call of every worker is the same collective.
  virtual Pending start_all_reduce(Bytes buffer) = 0;
  /// Brings the next micro-batch from storage to the device.
  virtual Pending start_load(Bytes input) = 0;
  /// The device does nothing for so long: a host that waits for it, input work, an optimizer on the host.
  virtual Pending start_pause(Seconds duration) = 0;
  virtual void end_step() = 0;

  Finished finished(Pending operation) { return Finished(std::move(operation), *this); }
  Finished forward() { return finished(start_compute(Work::forward, all_layers())); }
  Finished forward(LayerRange layers) { return finished(start_compute(Work::forward, layers)); }
  Finished backward(LayerRange layers) { return finished(start_compute(Work::backward, layers)); }
  Finished optimizer_step() { return finished(start_compute(Work::update, all_layers())); }
  Finished all_reduce(Bytes buffer) { return finished(start_all_reduce(buffer)); }
  Finished pause(Seconds duration) { return finished(start_pause(duration)); }

  LayerRange all_layers() const { return {0, workload().layers()}; }
};

}  // namespace stepcast
