#pragma once

#include <vector>

#include "scenarios/scenario.hpp"

namespace stepcast {

/// A scenario has no more settings, assumptions, calibrations or published figures, each.
constexpr std::size_t kMostEntries = 1000;

/// What a scenario has from elsewhere: ranges of what is not known, figures that are fed in, and published
/// ones. All throw InputError.
Assumption read_assumption(const YamlValue& value);
Feed read_feed(const YamlValue& value);
Published read_published(const YamlValue& value);

/// Values by key: those of a point, or of `set`.
std::vector<Assignment> read_point(const YamlValue& value);

}  // namespace stepcast
