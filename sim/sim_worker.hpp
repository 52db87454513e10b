#pragma once

#include <functional>
#include <vector>

#include "sim/collective_queue.hpp"
#include "sim/compute_times.hpp"
#include "sim/noise.hpp"
#include "sim/simulate.hpp"

namespace stepcast {

/// What all workers of a simulated run share.
struct SimWorld {
  const Simulation& simulation;
  SimNetwork& network;
  ComputeClock& clock;
  const ComputeTimes& times;
  CollectiveQueue& all_reduces;
  CollectiveQueue& loads;
  Timeline* timeline = nullptr;
};

/// What one program's workers did in a step.
struct StepShare {
  int members = 0;
  double work_sum = 0, work_max = 0;  ///< compute of the members [s]
  double loading = 0;
};

/// A worker of the simulated world, standing for one or more equal workers ("members") with a clock each.
class SimWorker : public Worker {
 public:
  /// Workers `first` .. `first + members - 1`. `step_done` is called by end_step.
  SimWorker(SimWorld& world, int first, int members,
            std::function<void(int step, const StepShare&)> step_done);

  const Workload& workload() const override { return *world_.simulation.workload; }
  Pending start_compute(Work pass, LayerRange layers) override;
  Pending start_all_reduce(Bytes buffer) override;
  Pending start_load(Bytes input) override;
  Pending start_pause(Seconds duration) override;
  void end_step() override;

 private:
  /// One worker, or all of them where nothing tells them apart.
  struct Member {
    double clock = 0;  ///< when it is done with what it has started, as work
    double work = 0;   ///< compute in this step
    Draw draw;
  };

  void waited_for(const Operation& operation) override;
  void draw_step();
  double latest() const;
  Pending busy_until(double work, const char* what);

  SimWorld& world_;
  int first_, count_;
  std::vector<Member> members_;
  std::function<void(int, const StepShare&)> step_done_;
  int step_ = 0;
  double loading_ = 0;
  std::size_t all_reduces_ = 0, loads_ = 0;  ///< calls so far
};

}  // namespace stepcast
