#pragma once

#include <array>
#include <memory>
#include <vector>

#include "sim/simulation.hpp"
#include "sim/workers/step_statistics.hpp"
#include "strategies/plan/run_conditions.hpp"
#include "strategies/program/worker.hpp"

namespace stepcast {

/// Compute time of a range of layers in the median step or in a measured one. Prefix sums make a look-up one
/// subtraction, unless every layer has its own jitter.
class ComputeTimes {
 public:
  explicit ComputeTimes(const Workload& workload);

  MeasuredSteps samples() const { return {prefixes_.size() - 1, sample_ranks_}; }
  double seconds(Work pass, LayerRange layers, const Draw& draw) const;

 private:
  double drawn_seconds(Work pass, LayerRange layers, const Draw& draw) const;

  using Prefix = std::vector<LayerSeconds>;  ///< [i]: sums over layers 0 .. i-1

  std::vector<LayerSeconds> median_;
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
  /// Adds busy time to every clock.
  /// @param seconds  without noise [s]
  /// @param factor   multiplies `seconds`
  /// @param from     earliest start: clocks that are behind it are set to it first [s]
  void add_busy_time(double seconds, double factor, double from);
  /// Moves clocks that are behind to the end of an operation that the program has waited for.
  void wait_until(double end, const Lags& lags);

  double latest() const;  ///< The largest clock.
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
    double work = 0;  ///< compute in this step [s]
    Draw draw;
  };

  const Simulation& simulation_;
  RankId first_rank_;
  std::vector<Member> members_;
};

}  // namespace stepcast
