#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "report/results/results.hpp"
#include "runtime/devices/pipeline_stage_chunk.hpp"
#include "runtime/host_noise/repeated_timing.hpp"
#include "runtime/ranks/cluster.hpp"
#include "runtime/runs/real_worker.hpp"
#include "runtime/runs/run_sample.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "runtime/transport/progress_thread.hpp"

namespace stepcast {

/// Maximum relative deviation of the machine's speed during a round of runs from its speed during the
/// captures, for the round to count.
constexpr double kMaxSpeedDeviation = 0.04;

/// The point of a run, and signs of a disturbance of the run.
struct RunQuality {
  std::size_t point = 0;
  bool disturbed = false;      ///< the host or another process took CPU time from it
  double speed_deviation = 0;  ///< relative deviation of the machine's speed during its round
};

/// Limits of the number of runs of a point.
struct RetryBudget {
  int wanted = 0;            ///< undisturbed runs within kMaxSpeedDeviation
  int most_undisturbed = 0;  ///< limit of undisturbed runs at any speed
  int most = 0;              ///< limit of all runs
};

/// Points that have fewer runs that count than wanted, and have not used up their budget.
std::vector<std::size_t> unfinished_points(const std::vector<RunQuality>& runs, std::size_t points,
                                           const RetryBudget& budget);

/// Selects the runs that count: for each point the undisturbed ones within kMaxSpeedDeviation. If there are
/// fewer than `wanted`, the undisturbed ones with the smallest deviation are added up to that number.
std::vector<bool> select_runs(const std::vector<RunQuality>& runs, int wanted);

/// What a rank's own loads of input take, for each byte that it loads: no disturbance.
struct LoadCost {
  double off_core = 0;  ///< time of compute in which no thread of the rank runs [s]
  double stolen = 0;    ///< time that a hypervisor takes from all cores while all ranks load [s]
};

/// Backend, device factory and communication of a rank in PointRuns.
struct RunResources {
  Backend& backend;
  /// Makes the device of a point. If empty, or if it returns null, PointRuns makes a replica or a pipeline
  /// stage.
  std::function<std::unique_ptr<RankDevice>(std::size_t index, const Experiment&)> device = {};
  /// Makes RealWorld::collective_backend for a plan; empty: all collectives use the transport.
  std::function<CollectiveBackend(const Plan&)> make_collective_backend = {};
  DevicePayloads* device_payloads = nullptr;  ///< RealWorld::device_payloads; it outlives the runs
  CoreSpeedProbe* speed = nullptr;            ///< probed before each run; null: not measured
  LoadCost loads = {};
  /// Networks of `backend` that exist already and go on to be used.
  std::map<NetworkVariant, std::shared_ptr<Network>> networks = {};
  std::function<void(std::exception_ptr)> on_failure = {};  ///< RealWorld::on_failure
  /// Called after each run of the first round of run_all, with the share of the round's runs that have been
  /// made. May be empty.
  std::function<void(double share)> between_runs = {};
};

/// Runs all points of a validation on one rank, again and again, and collects step times.
class PointRuns {
 public:
  PointRuns(const RankContext& run, const Validation& validation, const ValidationOptions& options,
            Library& library, RunResources resources);
  PointRuns(const PointRuns&) = delete;
  ~PointRuns();

  /// Runs all points in rounds, with the algorithms that a forecast chose. A point is repeated while too few
  /// of its runs count, up to its RetryBudget. Rank 0 adds each run to samples.jsonl; at the end it writes
  /// the file again, with the runs that count marked. Rows that were there before stay.
  /// @param forecast  number of the forecast, from 1; called once for each, in order
  void run_all(int forecast = 1);

  ProgressThread& collective_thread() { return collective_thread_; }
  PointToPoint& messages() { return messages_; }
  CompletionQueue& completions() { return completions_; }
  int& last_run() { return last_run_; }

 private:
  /// A point with what this rank needs to run it.
  struct PreparedPoint {
    Experiment experiment;
    PipelineStageNetworks stage;
    std::unique_ptr<RankDevice> device;
    std::unique_ptr<RankCollectives> collectives;
    CollectiveBackend collective_backend;
  };
  /// Measurements of this rank in one run.
  struct Measured {
    RealRun run;
    double stolen_share = 0;  ///< CPU time that the host gave to others
    double round_trip = 0;    ///< core-to-core latency after the run [s]; 0: not measured
  };

  void add(std::size_t index);
  std::unique_ptr<RankCollectives> collectives_of(std::size_t index, const Plan& plan) const;
  void open_input();
  std::unique_ptr<RankDevice> device_of(std::size_t index, PreparedPoint& point);
  Network& network_of(const NetworkVariant& variant, const Experiment& experiment);
  void run_round(const std::vector<std::size_t>& points, int number);
  Measured run_once(std::size_t index, int repeat);
  RunSample gather(std::size_t index, int repeat, const Measured& measured) const;
  bool is_disturbed(const RunSample& sample, const Measured& measured) const;
  void write(bool at_the_end) const;

  const RankContext& run_;
  const Validation& validation_;
  const ValidationOptions& options_;
  Library& library_;
  RunResources resources_;
  std::map<NetworkVariant, std::shared_ptr<Network>> networks_;
  std::vector<std::unique_ptr<PreparedPoint>> points_;
  CompletionQueue completions_;  // before the threads that post to it: it outlives them
  ProgressThread collective_thread_;
  PointToPoint messages_;
  std::unique_ptr<InputLoader> input_;  ///< null: no point reads input
  int last_run_ = 0;
  std::vector<RunQuality> runs_;
  std::vector<RunSample> samples_;  ///< one for each of `runs_`, on rank 0 only
  std::string earlier_;             ///< samples.jsonl before `runs_`, on rank 0 only
  int forecast_ = 1;
};

}  // namespace stepcast
