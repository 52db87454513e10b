#pragma once

#include <string>
#include <vector>

#include "scenarios/scenario.hpp"
#include "strategies/idle_keys.hpp"

namespace stepcast {

/// What a point of the sweep leaves idle.
struct IdleAtPoint {
  std::size_t point = 0;
  IdleKeys keys = {};
  bool one_device = false;  ///< which has no use for many keys, and says nothing of them
};

/// A line each key that has an effect at none of the points that give it. A key that works at one point and
/// not at another is what sweeps are made of.
std::vector<std::string> idle_notes(const Scenario& scenario, const std::vector<IdleAtPoint>& points);

}  // namespace stepcast
