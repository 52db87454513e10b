#pragma once

#include <vector>

#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// What the points of a sweep have in common, each as a number by point. The errors of the model go by it
/// (forecast/posterior.hpp). Keys that are no details (Key::detail) tell layouts from each other.
struct Alternatives {
  std::vector<std::size_t> layouts;  ///< equal values of the keys that differ among equally many workers
  std::vector<std::size_t> details;  ///< the same of the details
  std::vector<std::size_t> places;   ///< the first point that differs in details alone
};

Alternatives alternatives_of(const Scenario& scenario);

}  // namespace stepcast
