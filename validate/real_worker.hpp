#pragma once

#include "strategies/worker.hpp"
#include "validate/run_program.hpp"

namespace stepcast {

/// What a program of a real run asks for, done: passes by the rank's device, collectives by the communication
/// thread, messages by mail.
class RealWorker : public Worker {
 public:
  RealWorker(RealWorld& world, int role)
      : world_(world), role_(role), plan_role_(world.plan.roles[static_cast<std::size_t>(role)]) {}

  const Workload& workload() const override {
    return world_.plan.workloads.at(static_cast<std::size_t>(plan_role_.workload));
  }
  Pending start_compute(Work pass, LayerRange layers) override;
  Pending start_local(const LocalWork& work) override;
  Pending start_pause(Seconds duration) override;
  Pending start_load(Bytes) override;
  Pending start_collective(int index) override;
  Pending start_send(int role, const Message& message) override;
  Pending start_receive(int tag, int role, Array into) override;
  void calculate(const Arithmetic& run) override;
  void end_step() override;
  double mark(const char* phase) override;
  void record(const char* what, double value) override { run_.records[what].push_back(value); }

  /// From now on its time counts.
  void begin();
  RealRun take_run() { return std::move(run_); }

 private:
  void waited_for(const Operation& operation) override;
  bool by_library(const Collective& collective) const;
  void carry(int index, const CollectiveWork& work, const std::vector<std::vector<Round>>& phases);

  RealWorld& world_;
  int role_;
  const Role& plan_role_;
  RealRun run_;
  double marked_ = 0, computed_ = 0;
};

}  // namespace stepcast
