#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// The keys that have no effect at a point of the sweep.
struct IneffectiveAtPoint {
  std::size_t point = 0;
  IneffectiveKeys keys = {};
  bool one_device = false;  ///< true for a point of one device, which ignores many keys without listing them
};

/// One line per key that has no effect at any of the points that set it. A key that has an effect at some
/// point of a sweep is not listed.
std::vector<std::string> ineffective_notes(const Scenario& scenario,
                                           const std::vector<IneffectiveAtPoint>& points);

struct CheckedPoints {
  Experiment largest;  ///< the point with the most workers
  /// Lines to print: doubts about the traces of all points, keys that would make the first misfit fit, and
  /// keys that have no effect at any point.
  std::vector<std::string> notes = {};
  /// For each point whose experiment cannot be built, the reason.
  std::map<std::size_t, std::string> failed = {};
  /// A line per point that does not fit with the assumptions in the middle.
  std::vector<std::string> misfits = {};
};

/// Builds the experiment of every point before any point is simulated, so that invalid values are found
/// early. A point that cannot be built fails alone, unless it is alone: if no point can be built, the error
/// of the first point is thrown.
/// @param part  the points are a shard's, so all of them may fail
CheckedPoints checked_points(const Scenario& scenario, const std::vector<std::size_t>& points,
                             Library& library, bool part = false);

}  // namespace stepcast
