#pragma once

#include <optional>
#include <string>
#include <vector>

#include "forecast/advice/changes.hpp"
#include "forecast/simulations.hpp"
#include "report/results/results.hpp"
#include "report/statistics/statistics.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// A change that helps.
struct Advice {
  Change change;
  double gain = 0;                         ///< samples per second with it / without it - 1
  std::optional<Quantiles> interval = {};  ///< of the gain, over some of the draws
  Row before = {}, after = {};
};

/// The fitting point with most workers; of several, the fastest. @param points  those that have results
std::optional<std::size_t> largest_point(const std::vector<std::size_t>& points, const Simulations& all);

/// What was tried at one point.
struct AdvisedPoint {
  std::size_t point = 0;
  std::vector<Advice> helpful;     ///< at most three, the most helpful first
  std::vector<std::string> tried;  ///< keys, in the order of the simulations
};

/// Simulates changes that a user can make, each alone, at largest_point, in the first draw: as many as a
/// fifth of the draws' work allows if a simulation costs in proportion to its devices, but at least three and
/// at most 24. What is left of them goes into further draws of those that help most.
/// @param points  those that have results
std::optional<AdvisedPoint> advised(const Scenario& scenario, const std::vector<std::size_t>& points,
                                    const Simulations& all, Library& library, int processes);

/// The lines that a run prints: the changes that help most, or that nothing does.
std::vector<std::string> advice_lines(const Scenario& scenario, const AdvisedPoint& advised);

/// The same for `--json`: point, change, gain with its interval, changes_training, other_hardware.
Results advice_results(const Scenario& scenario, const AdvisedPoint& advised);

/// "Change first: strategy.bucket: 100 MiB in place of 25 MiB, +12 % samples/s." It is the best change that
/// costs nothing and leaves the training as it is, if there is one.
std::string advice_sentence(const Scenario& scenario, const AdvisedPoint& advised);

}  // namespace stepcast
