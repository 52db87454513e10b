#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "report/results.hpp"
#include "validate/communication_thread.hpp"
#include "validate/kept_runs.hpp"
#include "validate/machine_speed.hpp"
#include "validate/rank_run.hpp"
#include "validate/run_program.hpp"
#include "validate/stage_device.hpp"
#include "validate/validation.hpp"

namespace stepcast {

/// What a rank computes on, and who carries its collectives.
struct RealPlace {
  Backend& backend;
  /// What computes a point in a way of its own; null, or nothing made: the kernels of `backend`.
  std::function<std::unique_ptr<RankDevice>(std::size_t index, const Experiment&)> device = {};
  /// RealWorld::carry for a point; null: all are played over the transport.
  std::function<Carry(const Plan&)> carry = {};
  Parcels* parcels = nullptr;                              ///< RealWorld::parcels; it outlives the runs
  MachineSpeed* speed = nullptr;                           ///< looked at before each run; null: it is not
  std::map<Need, std::unique_ptr<Network>> networks = {};  ///< of `backend`, that there are already
};

/// All points of a validation on one rank.
class RealRuns {
 public:
  RealRuns(const RankRun& run, const Validation& validation, const ValidationOptions& options,
           Library& library, RealPlace place);

  /// Repeats in rounds over all points; those that were disturbed, or whose round was off the launch's pace,
  /// again, up to a limit. Rank 0 writes samples.jsonl, at the end with what counts.
  void all();

  CommunicationThread& thread() { return thread_; }
  RealMail& mail() { return mail_; }
  Completions& completions() { return completions_; }
  int& runs() { return runs_; }

 private:
  /// A point, ready to run on this rank.
  struct RealPoint {
    Experiment experiment;
    StageNetworks stage;
    std::unique_ptr<RankDevice> device;
    std::unique_ptr<RealCollectives> collectives;
    Carry carry;
  };

  void add(std::size_t index);
  std::unique_ptr<RankDevice> device_of(std::size_t index, RealPoint& point);
  Network& network_of(const Need& need, const Experiment& experiment);
  void round(const std::vector<std::size_t>& points, int number);
  void once(std::size_t index, int repeat);
  bool is_disturbed(const std::vector<std::vector<double>>& others, Row& row) const;
  void write(bool at_the_end) const;

  const RankRun& run_;
  const Validation& validation_;
  const ValidationOptions& options_;
  Library& library_;
  RealPlace place_;
  std::map<Need, std::unique_ptr<Network>> networks_;
  std::vector<std::unique_ptr<RealPoint>> points_;
  CommunicationThread thread_;
  RealMail mail_;
  Completions completions_;
  int runs_ = 0;
  std::vector<MadeRun> made_;
  std::vector<Row> rows_;  ///< of each of them, on rank 0
};

}  // namespace stepcast
