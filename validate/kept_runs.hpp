#pragma once

#include <cstddef>
#include <vector>

namespace stepcast {

/// The most by which the machine's speed over a round of runs may differ from the launch's pace, that of the
/// captures, for the round to count.
constexpr double kMostOffPace = 0.04;

/// What is known of one run apart from how long its steps took.
struct MadeRun {
  std::size_t point = 0;
  bool disturbed = false;  ///< time was stolen from it, or waited
  double off_pace = 0;     ///< of the round that it was in, a share
};

/// Runs of one point.
struct Chances {
  int wanted = 0;            ///< undisturbed ones at the launch's pace
  int most_undisturbed = 0;  ///< at any pace
  int most = 0;
};

/// Points of which fewer runs than wanted count so far, and that have not had all their chances.
std::vector<std::size_t> unfinished_points(const std::vector<MadeRun>& runs, std::size_t points,
                                           const Chances& chances);

/// Which runs count: of each point the undisturbed ones of rounds at the launch's pace; where there are fewer
/// than `wanted`, the undisturbed ones of the rounds nearest to it up to that number.
std::vector<bool> kept_runs(const std::vector<MadeRun>& runs, int wanted);

}  // namespace stepcast
