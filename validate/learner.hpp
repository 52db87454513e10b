#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "report/results.hpp"
#include "validate/held_out.hpp"
#include "validate/learning_part.hpp"

namespace stepcast {

/// Mini-batches of a worker in what its program calls a step: those of a block.
std::int64_t mini_batches_a_step(const Plan& plan);
/// Steps of its program that an experiment's learning takes.
std::int64_t learning_steps(const Experiment& experiment);

/// What one rank of an experiment with `learning` has of the network, its data, and what its parameters were
/// now and then.
class Learner {
 public:
  struct Options {
    int rank = 0;
    std::int64_t batch = 1;  ///< samples of a pass
    std::shared_ptr<const TrainAndTest> data;
    std::function<void()> beat;      ///< called while it reads and scores
    bool compresses = false;         ///< what the program compresses is compressed for real
    Transport* transport = nullptr;  ///< to those that have the rest of a shared network
  };

  /// The experiment and the backend outlive it.
  Learner(const Experiment& experiment, Backend& backend, Options options);

  /// What computes; it outlives nothing of this.
  std::unique_ptr<RankDevice> device();

  /// The rank's program ended a step. A snapshot is kept every so many mini-batches.
  void step_ended(double seconds);
  /// Whether this rank has some of the parameters whose worth is told: it calls `rows`.
  bool has_rows() const;
  /// A row for each snapshot, on rank 0: what its parameters know of held-out data.
  std::vector<Row> rows();
  /// After `rows`: the parameters at the end.
  const Parameters& last() const { return last_; }

 private:
  struct Snapshot {
    std::int64_t mini_batches = 0;  ///< of this worker
    double seconds = 0;
    std::vector<float> values;  ///< of all own parameters, as they lie in memory
  };

  DeviceLearning learning();
  void take_snapshot(double seconds);
  Row row_of(const Snapshot& snapshot, const Score& score) const;

  const Experiment& experiment_;
  Options options_;
  LearningTask task_;
  Backend& backend_;
  std::unique_ptr<LearningPart> part_;
  Batches batches_;
  std::int64_t done_ = 0;  ///< mini-batches
  Parameters start_, last_;
  std::vector<Snapshot> snapshots_;
};

/// What an experiment with `learning` learns from.
std::shared_ptr<const TrainAndTest> learning_data(const Experiment& experiment);

}  // namespace stepcast
