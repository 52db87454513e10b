#pragma once

#include <string>
#include <vector>

#include "report/results/results.hpp"

namespace stepcast {

/// The two sentences that matter: where scaling ends and why, and what to change first.
struct Answer {
  std::string scaling, change;
};

/// The answer from the rows that have results. It is about the series with the highest throughput at its most
/// workers. Scaling ends at the most workers that keep half of the efficiency of the series' first point, or
/// before, where throughput is highest.
/// @param sweep  keys of the sweep
Answer answer_of(const Results& results, const std::vector<std::string>& sweep);

}  // namespace stepcast
