#pragma once

#include <string>
#include <vector>

#include "report/results/results.hpp"

namespace stepcast {

/// The probability that each setting is the best, from what the simulation gives in each draw and an error of
/// each setting's own (MeasuredConstants::own). Errors that all settings have in common cancel.
/// @param merits  [setting][draw], higher is better, above 0; as many draws for each
std::vector<double> best_probabilities(const std::vector<std::vector<double>>& merits, double own);

/// "cannot be told apart, 3 of 30: ..." or "best of 30: ...": the fewest that contain the best with 90 %.
std::string told_apart_line(const std::vector<std::string>& names, const std::vector<double>& probabilities);

}  // namespace stepcast
