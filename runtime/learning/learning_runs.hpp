#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "data/train_and_test.hpp"
#include "report/results/results.hpp"
#include "runtime/learning/evaluated_loss.hpp"
#include "runtime/learning/learning_shard.hpp"
#include "runtime/p2p/device_payloads.hpp"
#include "runtime/p2p/point_to_point.hpp"
#include "runtime/ranks/cluster.hpp"
#include "runtime/runs/real_worker.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "runtime/transport/progress_thread.hpp"

namespace stepcast {

/// Mini-batches of a worker in one step of its program: those of a block in local SGD, else one.
std::int64_t mini_batches_a_step(const Plan& plan);
/// Steps of the program that an experiment with `learning` takes.
std::int64_t learning_steps(const Experiment& experiment);

/// With these a timed experiment has the seeds and the steps of a training. @param seed  from 1
Overrides learning_overrides(const Experiment& timed, std::int64_t seed);

/// Training of one rank of an experiment with `learning`: its shard of the network, its data, and snapshots
/// of its parameters.
class Learner {
 public:
  struct Options {
    RankId rank{0};
    std::int64_t batch = 1;  ///< samples of a pass
    std::shared_ptr<const TrainAndTest> data;
    std::function<void()> on_progress;  ///< called while it reads data and evaluates
    bool compresses = false;            ///< gradients are compressed before they are sent
    Transport* transport = nullptr;     ///< to the ranks that have the other shards of the network
    JointNetworks* joint = nullptr;     ///< as LearningPlace has it
  };

  /// The experiment and the backend outlive it.
  Learner(const Experiment& experiment, Backend& backend, Options options);

  /// The device that trains. The learner outlives it.
  std::unique_ptr<RankDevice> device();

  /// Call it at the end of each step of the rank's program. It takes a snapshot every `evaluate_every`
  /// mini-batches and after the last step.
  /// @param seconds  since the program began
  void step_ended(double seconds);
  /// True if this rank holds parameters of the replica that is evaluated (the first one); it then calls
  /// `evaluate`.
  bool holds_evaluated_parameters() const;
  /// On rank 0, the loss and accuracy of the parameters of each snapshot on test data. Collective
  /// over the ranks that hold evaluated parameters.
  std::vector<EvaluatedLoss> evaluate();
  /// After `evaluate`, on rank 0: the parameters at the end.
  const Parameters& final_parameters() const { return final_; }

 private:
  struct Snapshot {
    std::int64_t mini_batches = 0;  ///< of this worker
    double seconds = 0;
    std::vector<float> values;  ///< all parameters of this rank, as they are stored
  };

  DeviceLearning learning();
  void take_snapshot(double seconds);
  EvaluatedLoss evaluation_of(const Snapshot& snapshot, const Score& score) const;

  const Experiment& experiment_;
  Options options_;
  LearningTask task_;
  Backend& backend_;
  std::unique_ptr<LearningShard> shard_;
  Batches batches_;
  std::int64_t mini_batches_done_ = 0;
  Parameters initial_, final_;
  std::vector<Snapshot> snapshots_;
};

/// The training and test data of an experiment with `learning`.
std::shared_ptr<const TrainAndTest> learning_data(const Experiment& experiment);

/// Why an experiment with `learning` cannot learn; empty if it can.
/// @throws InputError for unusable data or checkpoints
std::string unsupported_learning(const Experiment& experiment);
/// The same for ranks that are processes.
std::string unsupported_real_learning(const Experiment& experiment);

/// The objects that all learning runs of a rank share.
struct LearningWorld {
  const RankContext& run;
  Backend& backend;
  ProgressThread& collective_thread;
  PointToPoint& messages;
  CompletionQueue& completions;
  int& last_run;                                                               ///< number of the last run
  std::function<CollectiveBackend(const Plan&)> make_collective_backend = {};  ///< as RunResources has it
  /// Like RunResources::device_payloads, with channels opened for these plans.
  DevicePayloads* device_payloads = nullptr;
};

/// Trains every point that has `learning` for real with each of its seeds, one after the other. Rank 0 writes
/// loss and accuracy on test data, against mini-batches and seconds, to `learning.jsonl`, and a checkpoint
/// for each point at the end of its first training.
void learn_all(const LearningWorld& world, const Validation& validation, Library& library);

}  // namespace stepcast
