#pragma once

#include <functional>
#include <map>
#include <vector>

#include "sim/simulation.hpp"

namespace stepcast {

/// One program's report of a step.
struct ProgramStep {
  int members = 0;                    ///< number of workers that the program stands for
  double work_sum = 0, work_max = 0;  ///< compute of the members: sum and maximum [s]
  double loading = 0;                 ///< time spent waiting for input [s]
};

/// Statistics of the steps that the programs report.
class StepStatistics {
 public:
  /// @param members   number of workers whose programs report every step
  /// @param programs  number of programs
  /// @param now       returns the simulated time [s]
  /// @param busy      returns the total duration of communication so far [s]
  StepStatistics(int members, std::size_t programs, std::function<double()> now, std::function<double()> busy)
      : members_(members), ends_(programs), now_(std::move(now)), busy_(std::move(busy)) {}

  void add(std::size_t program, int step, const ProgramStep& report);

  /// The steps that all workers have ended.
  const std::vector<StepSeconds>& steps() const { return steps_; }

  /// The first program that ended all its steps; of several at the same date, the one of the smallest number.
  std::size_t first_to_end() const;

  /// The mean step of workers that do not wait for each other (own_pace_step_seconds).
  StepSeconds steady_state() const;

 private:
  void close(const ProgramStep& total);

  int members_;
  std::vector<std::vector<double>> ends_;  ///< by program: dates at which its steps ended [s]
  std::function<double()> now_, busy_;
  std::map<int, ProgramStep> open_;  ///< by step: sums over the programs that have reported it
  std::vector<StepSeconds> steps_;
  ProgramStep all_;  ///< sums over all steps and programs
  double last_end_ = 0, last_busy_ = 0;
};

}  // namespace stepcast
