#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "commands/learn/learning_points.hpp"
#include "core/typed_numbers.hpp"

namespace stepcast {

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
