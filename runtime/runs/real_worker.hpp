#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <vector>

#include "runtime/collectives/rank_collectives.hpp"
#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/devices/rank_device.hpp"
#include "runtime/p2p/device_payloads.hpp"
#include "runtime/p2p/point_to_point.hpp"
#include "runtime/ranks/shared_control_block.hpp"
#include "runtime/runs/input_loader.hpp"
#include "runtime/transport/progress_thread.hpp"
#include "runtime/transport/transport.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// One collective of the plan on device memory, for a collective backend such as NCCL.
struct CollectiveCall {
  CollectiveId id;
  float* memory = nullptr;  ///< device memory
  std::int64_t elements = 0;
  DeviceMemory::Event ready;  ///< the device's work that the collective waits for
  const std::vector<std::vector<Round>>* phases = nullptr;  ///< RankCollectives::phases
};

/// Executes a collective; returns when it is complete. Called on the progress thread of collectives.
using CollectiveBackend = std::function<void(const CollectiveCall& work)>;

/// Everything that the program of one rank uses in a real run; all of it outlives the run.
struct RealWorld {
  const Plan& plan;
  Transport& transport;               ///< for collectives
  ProgressThread& collective_thread;  ///< executes them
  PointToPoint& messages;
  RankDevice& device;
  RankCollectives& collectives;
  CompletionQueue& completions;
  RankState& state;
  PollingPolicy* polling = nullptr;  ///< of the rank's core; null: no thread polls by it
  InputLoader* input = nullptr;      ///< loads the rank's input; null: loads take no time
  double delay = 0;                  ///< the program starts this long after the run [s]
  LibraryAllReduce library = {};     ///< makes the sums of one value of `all_reduce`; may be empty
  /// Executes collectives on device memory; empty: they are staged through the host, over the transport.
  CollectiveBackend collective_backend = {};
  /// Transfers message payloads from device to device; null: payloads travel with their messages.
  DevicePayloads* device_payloads = nullptr;
  /// Called at the end of each step with the time since the program began [s]; may be empty.
  std::function<void(double seconds)> on_step_end = {};
  /// Called with the program's error before anything waits for other ranks; may be empty.
  std::function<void(std::exception_ptr)> on_failure = {};
};

/// Measurements of one rank in one run of its program. Times are on CLOCK_MONOTONIC, which all ranks of a
/// machine share [s].
struct RealRun {
  double begin = 0;
  std::vector<double> step_ends;
  std::vector<double> compute_seconds;  ///< of each step
  WorkTime work_time;                   ///< of the whole run
  double loaded_bytes = 0;              ///< input that was loaded beside compute
  Records records;
};

/// Runs this rank's program of the plan. All ranks call it at about the same time. Programs of roles that do
/// not train (servers) end when all training programs, and the servers after them, have ended and all their
/// messages are answered.
/// @param run  number of the run, the same on all ranks and greater than that of earlier runs
/// @throws what the program threw
RealRun run_program(RealWorld& world, int run);

/// Executes the operations of a program in a real run: passes by the rank's device, collectives by a progress
/// thread, messages by PointToPoint.
class RealWorker : public Worker {
 public:
  RealWorker(RealWorld& world, RoleId role)
      : world_(world), role_(role), plan_role_(world.plan.roles[role.index()]) {}

  const Workload& workload() const override { return world_.plan.workloads.at(plan_role_.workload); }
  Pending start_compute(Work pass, LayerRange layers) override;
  Pending start_local(const LocalWork& work) override;
  Pending start_pause(Seconds duration) override;
  Pending start_load(Bytes) override;
  Pending start_collective(CollectiveId id) override;
  Pending start_send(RoleId role, const Message& message) override;
  Pending start_receive(MessageTag tag, RoleId role, Array into) override;
  void end_step() override;
  double mark(const char* phase) override;
  void record(const char* what, double value) override { run_.records[what].push_back(value); }

  /// Starts to measure the program.
  void begin();
  RealRun take_run() { return std::move(run_); }

 private:
  void waited_for(const Operation& operation) override;
  bool by_library(const Collective& collective, const CollectiveBinding& work) const;
  void execute_collective(CollectiveId id, const CollectiveBinding& work,
                          const std::vector<std::vector<Round>>& phases);

  RealWorld& world_;
  RoleId role_;
  const Role& plan_role_;
  RealRun run_;
  double marked_ = 0, computed_ = 0;
  double loading_ = 0;       ///< bytes of loads that began after the last pass, and were not waited for
  std::int64_t passes_ = 0;  ///< started so far
};

}  // namespace stepcast
