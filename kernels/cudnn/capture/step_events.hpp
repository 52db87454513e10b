#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "kernels/cudnn/runtime/device.hpp"
#include "kernels/network/network.hpp"
#include "kernels/timing/step_timer.hpp"

namespace stepcast {

/// Standard output of a program that is found in PATH and runs without a shell.
struct ProgramOutput {
  bool ran = false;  ///< false if there is no such program or it failed
  std::string text;
};
ProgramOutput output_of(const std::vector<std::string>& arguments);

/// Clocks, temperature, power and throttle reasons of the GPU with this PCI bus id, in one line from
/// nvidia-smi, or a sentence that nvidia-smi failed. NVML is not used because no CUDA toolkit contains the
/// library.
std::string gpu_state(const std::string& pci_bus);

}  // namespace stepcast

namespace stepcast::cudnn {

/// Times steps of a network with events on its stream. The host does not wait inside a step and runs ahead as
/// in training; if it cannot keep up, the times include the GPU's waiting.
class StepEvents {
 public:
  StepEvents(std::shared_ptr<Device> device, Network& network);

  /// Runs at least `steps` steps, and more until the clocks of a GPU that was idle have risen.
  void warm_up(int steps);
  /// Runs a step and returns the seconds between events before and after it.
  double time_whole_step();
  /// Runs a step and returns the seconds of each pass, in the order of passes_in_order; each interval belongs
  /// to the pass that ended. Layers share the time of a call that works for all of them by their elements.
  /// @param cost_of_event  is subtracted from each interval, not below zero
  std::vector<double> time_passes(double cost_of_event);
  /// Seconds that one event adds to an interval while work is queued on the GPU: the median of many.
  double cost_of_event();

 private:
  void record(std::size_t event);
  std::vector<double> intervals(std::size_t events) const;
  /// Adds the time of a call that works for all layers to their passes.
  void share(double whole, Pass pass, std::vector<double>& seconds);

  std::shared_ptr<Device> device_;
  Network& network_;
  std::vector<LayerPass> passes_;                               ///< of a step, in order
  std::map<std::pair<std::size_t, Pass>, std::size_t> places_;  ///< in `passes_`
  std::vector<Event> events_;
};

/// Replays a whole step as one CUDA graph, which removes the cost of launches.
class StepGraph {
 public:
  /// @throws GpuError if a call of the step cannot be captured; the stream remains usable
  StepGraph(std::shared_ptr<Device> device, Network& network);

  double time();

 private:
  std::shared_ptr<Device> device_;
  WorkGraph graph_;
};

/// Time for which a GPU is kept busy before anything is timed [s], longer than its clocks need to rise.
constexpr double kRise = 0.15;

}  // namespace stepcast::cudnn
