#pragma once

#include <functional>
#include <span>
#include <vector>

#include "strategies/plan.hpp"

namespace stepcast {

/// Arrays and kernels behind one rank of a simulation that learns: its programs then do their arithmetic on
/// real values, while the clock stays the simulated one. What takes time does its work when it starts.
class WorkerMemory {
 public:
  virtual ~WorkerMemory() = default;

  virtual void compute(Work pass, LayerRange layers) = 0;
  virtual void calculate(const Arithmetic& run) = 0;
  /// What a collective or a message carries.
  virtual std::span<float> memory(const Buffer& buffer) = 0;
  /// The rank's program has ended a step, at this time of the simulation [s].
  virtual void step_ended(double seconds) = 0;
};

/// Of each rank of a plan. Empty: the simulation counts bytes and moves no values.
using WorkerMemories = std::vector<WorkerMemory*>;

}  // namespace stepcast
