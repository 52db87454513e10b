#pragma once

#include <vector>

#include "kernels/cudnn/device.hpp"
#include "kernels/network.hpp"

namespace stepcast::cudnn {

/// Times steps of a network by events on its stream. Nothing waits inside a step, so the host runs ahead as
/// it does in training; where it cannot keep up, the time that the GPU waits is in the times.
class StepEvents {
 public:
  StepEvents(std::shared_ptr<Device> device, Network& network);

  /// So many steps at least, and as long as the clocks of a GPU that was idle take to rise.
  void warm_up(int steps);
  /// Seconds between the events before and after the step.
  double time_outside();
  /// Seconds of each pass, in the order of passes_in_order; each interval belongs to the pass that ended.
  std::vector<double> time_inside();
  /// What one event adds to an interval while the GPU has a backlog of work: the median of many.
  double cost_of_event();

 private:
  void record(std::size_t event);
  std::vector<double> intervals(std::size_t events) const;

  std::shared_ptr<Device> device_;
  Network& network_;
  std::vector<Event> events_;
};

/// Replays a whole step as one CUDA graph: what is left when no launch costs anything.
class StepGraph {
 public:
  /// @throws GpuError if a call of the step cannot be captured; the stream is fit for use afterwards
  StepGraph(std::shared_ptr<Device> device, Network& network);

  double time();

 private:
  using Graph = Owned<cudaGraph_t, cudaGraphDestroy>;
  using Executable = Owned<cudaGraphExec_t, cudaGraphExecDestroy>;

  std::shared_ptr<Device> device_;
  Graph graph_;
  Executable executable_;
};

/// That a GPU is kept at work before anything is timed [s]: more than its clocks should take to rise.
constexpr double kRise = 0.15;

/// Seconds between two events that have passed.
double seconds_between(const Event& begin, const Event& end);
Event make_event();

}  // namespace stepcast::cudnn
