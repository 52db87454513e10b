#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/typed_numbers.hpp"
#include "report/results/results.hpp"
#include "runtime/learning/evaluated_loss.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// The reason why an experiment cannot learn in a simulation; empty if it can.
/// @throws InputError for invalid data or checkpoints
std::string unsupported_simulated_learning(const Experiment& experiment);

/// Memory of the networks of all ranks in one process.
Bytes learning_memory(const Experiment& experiment);

struct SimulatedLearning {
  std::vector<EvaluatedLoss> evaluations;  ///< `seconds` is the time of the simulated cluster
  double seconds = 0;  ///< until the last program ended, as in a simulation without values
};

/// Trains all ranks of an experiment with real arithmetic in one process. The simulated clock orders the
/// operations, so each gradient is computed with the same parameters as on the simulated cluster. A process
/// can make one call (see Engine).
/// @param batch       samples per forward and backward pass
/// @param checkpoint  file for the parameters at the end; empty: none
SimulatedLearning simulate_learning(const Experiment& experiment, std::int64_t batch,
                                    const std::filesystem::path& checkpoint = {});

/// The finished trainings of a folder, one file each, so that an interrupted `learn` goes on where it
/// stopped. They belong to a fingerprint of all inputs; with another one, or without `resume`, the store
/// begins empty.
class TrainingStore {
 public:
  TrainingStore() = default;  ///< keeps nothing
  TrainingStore(const std::filesystem::path& folder, const std::string& fingerprint, bool resume);

  /// The JSON lines of a training, at least one, if it is finished. @param name  part of a file name
  /// @throws InputError with the file and the line for a file that holds other text
  std::optional<std::string> known(const std::string& name) const;
  void add(const std::string& name, const std::string& lines) const;

 private:
  std::filesystem::path file_of(const std::string& name) const { return folder_ / (name + ".jsonl"); }

  std::filesystem::path folder_;  ///< empty: keeps nothing
};

/// One training: a point of a scenario with one seed.
struct LearningRun {
  std::string point;       ///< name of the point
  std::int64_t seed = 0;   ///< from 1; it is added to the seeds of the scenario
  Experiment experiment;   ///< with the number of steps that the training takes
  std::int64_t batch = 1;  ///< samples of a forward and backward pass
};

/// The trainings of a scenario: every point with every seed. Seed k moves `learning.seed`,
/// `learning.data.seed` of generated data and `simulation.seed` by k - 1, so that trainings of equal seed
/// learn the same task from the same initial parameters.
/// @throws InputError for a scenario without `learning`, and for a point that cannot learn in a simulation
std::vector<LearningRun> learning_runs(const Scenario& scenario);

/// The same training with this number of mini-batches and one evaluation at its end, to time it.
LearningRun cut_training(const Scenario& scenario, const LearningRun& run, std::int64_t mini_batches);

/// Settings and resources of the trainings of a command.
struct LearningJob {
  const Scenario& scenario;
  std::filesystem::path folder;  ///< for checkpoints
  bool checkpoints = false;      ///< true if the parameters at the end of each training are kept
  int processes = 1;
  TrainingStore finished = {};  ///< trainings that need not run again
  bool shows_progress = true;   ///< a line on the terminal counts the trainings
};

/// A hash of everything on which the results of these trainings depend.
std::string fingerprint_of(const Scenario& scenario, const std::vector<std::string>& settings);

/// Trains the runs in child processes and returns the rows of learning.csv. Before a run with
/// `learning.warm_start`, one worker trains alone; the run starts with its parameters, its seconds and its
/// samples.
Results trained(const LearningJob& job, std::vector<LearningRun> runs);

/// Limits of the trainings of a command.
struct LearningLimits {
  int processes = 1;
  std::string memory;  ///< as check_process_memory takes it
  std::string time;    ///< as time_limit takes it
};

/// Memory of a process that runs the largest of the trainings.
Bytes learning_memory(const std::vector<LearningRun>& runs);

/// The training number `run`, cut to this number of mini-batches and one evaluation at its end, to time it.
using CutTraining = std::function<LearningRun(std::size_t run, std::int64_t mini_batches)>;

/// Cuts trainings of learning_runs. The scenario and the runs outlive the function.
CutTraining cut_trainings(const Scenario& scenario, const std::vector<LearningRun>& runs);

/// Estimated processor time of all trainings. The largest one is begun to measure its time.
Seconds learning_time(const std::vector<LearningRun>& runs, const CutTraining& cut);

/// Throws LimitError if the trainings would need more memory or time than the limits. Unless an upper bound
/// by their work alone is below the limit of time, the largest training is begun to measure its time.
void check_learning_limits(const std::vector<LearningRun>& runs, const CutTraining& cut,
                           const LearningLimits& limits);

}  // namespace stepcast
