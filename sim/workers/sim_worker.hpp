#pragma once

#include <map>
#include <vector>

#include "sim/collectives/collective_queue.hpp"
#include "sim/simulation.hpp"
#include "sim/workers/simulated_messages.hpp"
#include "sim/workers/step_statistics.hpp"

namespace stepcast {

/// State that all workers of a simulated run share.
struct SimWorld {
  const Simulation& simulation;
  const PlannedCollectives& collectives;
  SimNetwork& network;
  SimulatedMessages& messages;
  std::vector<ComputeTimes> times;  ///< by workload
  std::map<std::pair<CommunicatorId, int>, std::unique_ptr<CollectiveQueue>>
      queues;  ///< by communicator and group
  /// Index of each rank in Communicator::ranks; -1 if it is not there.
  IdTable<CommunicatorId, IdTable<RankId, int>> position;
  /// The first program of each role; a role has one program per member, or a single one if folded.
  std::vector<std::size_t> programs;
  RunRecords records;
  std::int64_t clock_moves = 0;
  Timeline* timeline = nullptr;
  std::vector<ProgramLog>* logs = nullptr;  ///< one for each program; null: none is kept

  std::size_t program(RoleId role, int member) const {
    return programs[role.index()] + (collectives.folding().folds ? 0 : member);
  }
};

/// The simulated worker of one program. It stands for one or more equal workers ("members") with a clock
/// each.
class SimWorker : public Worker {
 public:
  /// Creates the worker of members `first` .. `first + members - 1` of a role.
  SimWorker(SimWorld& world, StepStatistics& statistics, RoleId role, int first, int members);

  const Workload& workload() const override;
  Pending start_compute(Work pass, LayerRange layers) override;
  Pending start_local(const LocalWork& work) override;
  Pending start_collective(CollectiveId collective) override;
  Pending start_send(RoleId role, const Message& message) override;
  Pending start_receive(MessageTag tag, RoleId role, Array into) override;
  Pending start_load(Bytes input) override;
  Pending start_pause(Seconds duration) override;
  void synchronize() override;
  void end_step() override;
  double mark(const char* phase) override;
  void record(const char* what, double value) override;

  Program program() { return role_.program(*this); }
  const Role& role() const { return role_; }
  std::string name() const;

 private:
  void waited_for(const Operation& operation) override;
  void take_values(const SimOperation& done);
  void draw_step();
  Pending busy_for(double seconds, bool factor, Span::Kind kind, const char* what);
  Pending busy_until(double work);
  void log(SimOperation& operation, LoggedOperation logged, ProgramLog::Stream stream);
  std::shared_ptr<SimOperation> communication(const char* awaited);
  void add_spans(Span::Kind kind, double start, const std::string& name, std::int64_t item = 0);
  void add_spans_at(double begin, double end, Span::Kind kind, const std::string& name);
  void add_layers(Work pass, LayerRange layers, double begin);

  SimWorld& world_;
  StepStatistics& statistics_;
  RoleId role_id_;
  const Role& role_;
  int first_, count_;
  MemberClocks members_;
  WorkerMemory* memory_;  ///< null: the simulation moves no values
  std::size_t number_;    ///< number of the program
  WorkClock clock_;
  CollectiveQueue loads_;
  int step_ = 0;
  double loading_ = 0, marked_ = 0;
  ProgramLog* log_;                              ///< null: none is kept
  std::vector<int> recorded_;                    ///< ranks on the timeline, among those it stands for
  double resumed_ = 0, step_began_ = 0;          ///< for the timeline [s]
  std::map<CommunicatorId, std::size_t> calls_;  ///< number of calls so far, by communicator
  std::size_t load_calls_ = 0;
};

}  // namespace stepcast
