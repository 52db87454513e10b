#pragma once

#include <functional>
#include <map>
#include <vector>

#include "sim/simulate.hpp"

namespace stepcast {

/// What one program's workers did in a step.
struct StepShare {
  int members = 0;
  double work_sum = 0, work_max = 0;  ///< compute of the members [s]
  double loading = 0;
};

/// Adds up what the programs report of their steps.
class StepBook {
 public:
  /// @param members  that report every step
  /// @param busy     communication so far [s]
  StepBook(int members, std::size_t programs, std::function<double()> now, std::function<double()> busy)
      : members_(members), ends_(programs), now_(std::move(now)), busy_(std::move(busy)) {}

  void add(std::size_t program, int step, const StepShare& share);

  /// Steps that all workers took together.
  const std::vector<StepSeconds>& steps() const { return steps_; }

  /// The program that ended all its steps before the others, or at the same date.
  std::size_t first_to_end() const;

  /// One step of workers that do not wait for each other (own_pace_step_seconds).
  StepSeconds steady_state() const;

 private:
  void close(const StepShare& total);

  int members_;
  std::vector<std::vector<double>> ends_;  ///< of the steps of each program
  std::function<double()> now_, busy_;
  std::map<int, StepShare> open_;
  std::vector<StepSeconds> steps_;
  StepShare all_;  ///< summed over all steps
  double last_end_ = 0, last_busy_ = 0;
};

}  // namespace stepcast
