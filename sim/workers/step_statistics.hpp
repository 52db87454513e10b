#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sim/simulation.hpp"
#include "sim/workers/issued_work.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/plan/run_conditions.hpp"
#include "strategies/program/worker.hpp"

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
  int members = 0;      ///< number of workers that the program stands for
  double work_sum = 0;  ///< compute of the members [s]
  double host_sum = 0;  ///< their waits for kernels that the host had not issued [s]
  double busy_max = 0;  ///< largest sum of both of a member [s]
  double loading = 0;   ///< time spent waiting for input [s]
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

  /// The mean step of an asynchronous plan (asynchronous_step_seconds).
  StepSeconds steady_state(const Plan& plan) const;

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

/// Compute time of a range of layers in the median step or in a measured one. Prefix sums make a look-up one
/// subtraction, unless every layer has its own jitter.
class ComputeTimes {
 public:
  explicit ComputeTimes(const Workload& workload);

  MeasuredSteps samples() const { return {prefixes_.size() - 1, sample_ranks_}; }
  double seconds(Work pass, LayerRange layers, const Draw& draw) const;
  /// Time in which the host issues the layers' kernels. No noise acts on it.
  double host_seconds(Work pass, LayerRange layers) const;
  /// The layers one after another, in the order of the pass. @param factor  multiplies the device's time
  IssuedWork issued(Work pass, LayerRange layers, const Draw& draw, double factor) const;

 private:
  /// Sums over layers 0 .. i-1 by pass, and their differences, so that a look-up touches one pass only.
  class Prefix {
   public:
    explicit Prefix(const std::vector<LayerSeconds>& layers);
    double seconds(Work pass, LayerRange layers) const {
      const std::vector<double>& sums = sums_[ordinal(pass)];
      return sums[layers.last] - sums[layers.first];
    }
    const std::vector<double>& layers(Work pass) const { return layers_[ordinal(pass)]; }

   private:
    std::array<std::vector<double>, 3> sums_, layers_;
  };

  double drawn_seconds(Work pass, LayerRange layers, const Draw& draw) const;

  std::vector<LayerSeconds> median_;
  bool has_host_;
  Prefix host_prefix_;
  std::array<std::vector<int>, 3> timed_layers_;  ///< by pass: the layers that take time, ascending
  std::vector<Prefix> prefixes_;                  ///< [0]: of the medians; [1 + i]: of measured step i
  int sample_ranks_;
};

/// For each member, the time from its completion of an operation to the operation's end [s]. Null if all
/// members complete together.
using Lags = std::shared_ptr<const std::vector<double>>;

/// The clocks of the equal workers ("members") that one program stands for, and the noise that each draws for
/// a step. If no noise makes members differ, a single clock stands for all of them.
class MemberClocks {
 public:
  /// Creates the clocks of members `first` .. `first + members - 1` of a role.
  MemberClocks(const Simulation& simulation, const Role& role, int first, int members);

  std::size_t size() const { return members_.size(); }
  RankId rank(std::size_t member) const { return RankId(first_rank_.index() + member); }

  void draw_step(int step, const MeasuredSteps& samples);
  void compute(Work pass, LayerRange layers, const ComputeTimes& times);
  /// Sets the hosts' clocks that are behind to those of the devices.
  void synchronize();
  /// Adds busy time to every clock.
  /// @param seconds  without noise [s]
  /// @param factor   multiplies `seconds`
  /// @param from     earliest start: clocks that are behind it are set to it first [s]
  void add_busy_time(double seconds, double factor, double from);
  /// Moves clocks that are behind to the end of an operation that the program has waited for.
  void wait_until(double end, const Lags& lags);

  /// Does so for one member. @returns how far its clock was behind [s]
  double wait_until(std::size_t member, double end);

  double latest() const;  ///< The largest clock.
  std::vector<double> clocks() const;
  /// The date at which each layer ends if a pass takes from `begin` to latest(), by the times of the first
  /// member, in the order of the pass.
  std::vector<std::pair<int, double>> layer_ends(Work pass, LayerRange layers, const ComputeTimes& times,
                                                 double begin) const;
  Lags lags() const;  ///< How far each clock is behind the latest.
  /// The lag of each member's group of a communicator behind the latest group; a group is as late as its
  /// latest member.
  /// @param position  index of each rank in Communicator::ranks
  Lags group_lags(const Communicator& all, const IdTable<RankId, int>& position) const;
  /// Adds the compute of this step to `step` and starts the sums of the next step.
  void end_step(ProgramStep& step);

 private:
  struct Member {
    /// Date when it has finished all that it has started, in the coordinate of WorkClock [s].
    double clock = 0;
    double host = 0;       ///< date when its host has issued all of that, in the same coordinate [s]
    double work = 0;       ///< compute in this step [s]
    double host_wait = 0;  ///< in this step [s]
    Draw draw;
  };

  const Simulation& simulation_;
  RankId first_rank_;
  std::vector<Member> members_;
};

/// The factor on compute times of workers that keep a common pace, that of the slowest of their devices: the
/// expected maximum of as many lognormal factors of Noise::device_spread, of which the median is 1. 1 for
/// asynchronous plans, whose throughput is that of the mean device.
/// Source of the order statistic: G. Blom, Statistical Estimates and Transformed Beta-Variables (1958).
double slowest_device_factor(const Plan& plan, const Noise& noise);

/// Steps simulated with that factor on all compute times, with what exceeds the median device's compute as
/// waiting for the slowest.
void attribute_to_slowest(double factor, std::vector<StepSeconds>& steps);

}  // namespace stepcast
