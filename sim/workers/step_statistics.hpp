#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sim/simulation.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// The values that the programs of a run record, in order, and their number when a program ended its last
/// step. No date is stored per record, because a run with servers makes millions of records.
class RunRecords {
 public:
  /// Adds a record. @param now  simulated time [s]; must not decrease from call to call
  void add(const char* name, double value, double now) {
    if (now > last_end_) close();
    list(name).push_back(value);
  }

  /// Notes that a program ended a step at the date `now` [s]; all records of this date count as earlier.
  void step_ended(std::size_t program, double now);

  /// Number of records by name when this program had ended its last step.
  std::map<std::string, std::size_t> counts_at_end(std::size_t program);

  Records take() { return std::move(records_); }

 private:
  /// The list of a name. Lookup is by the address of the text first: a name mostly is the same string
  /// literal.
  std::vector<double>& list(const char* name) {
    for (const auto& [known, values] : lists_) {
      if (known == name) return *values;
    }
    return *lists_.emplace_back(name, &records_[name]).second;
  }
  void close();

  Records records_;
  std::vector<std::pair<const char*, std::vector<double>*>> lists_;
  /// For each program and index in lists_, the number of records at the program's last step.
  std::vector<std::vector<std::size_t>> counts_;
  std::vector<std::size_t> ended_;  ///< programs that ended a step at last_end_ and have no counts of it yet
  double last_end_ = std::numeric_limits<double>::infinity();
};

/// The first records of each name.
/// @param counts  how many to keep, by name; names without an entry keep all their records
Records first_records(Records records, const std::map<std::string, std::size_t>& counts);

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
