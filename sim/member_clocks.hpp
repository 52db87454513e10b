#pragma once

#include <memory>
#include <vector>

#include "sim/compute_times.hpp"
#include "sim/simulate.hpp"
#include "sim/step_book.hpp"
#include "strategies/noise.hpp"

namespace stepcast {

/// Of each member: so much earlier than an end it was done for that one [s]; none where all are alike.
using Lags = std::shared_ptr<const std::vector<double>>;

/// What tells apart the equal workers ("members") that one program stands for: a clock each, and what each
/// draws for a step. One clock stands for all where nothing tells them apart.
class MemberClocks {
 public:
  /// Members `first` .. `first + members - 1` of a role.
  MemberClocks(const Simulation& simulation, const Role& role, int first, int members);

  std::size_t size() const { return members_.size(); }
  int rank(std::size_t member) const { return first_rank_ + static_cast<int>(member); }

  void draw_step(int step, const MeasuredSteps& samples);
  void compute(Work pass, LayerRange layers, const ComputeTimes& times);
  /// @param from  clocks that are behind this one are brought up to it before
  void busy(double seconds, double factor, double from);
  /// What was waited for is done.
  void lift(double end, const Lags& lags);

  double latest() const;
  Lags lags() const;  ///< behind the latest
  /// The same for the groups of a communicator, each as late as the latest of its members.
  /// @param position  of each rank in the communicator
  Lags group_lags(const Communicator& all, const std::vector<int>& position) const;
  /// Adds up this step's compute, and begins the next's.
  void end_step(StepShare& share);

 private:
  struct Member {
    double clock = 0;  ///< when it is done with what it has started, as work
    double work = 0;   ///< compute in this step
    Draw draw;
  };

  const Simulation& simulation_;
  int first_rank_;
  std::vector<Member> members_;
};

}  // namespace stepcast
