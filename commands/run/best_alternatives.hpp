#pragma once

#include <optional>
#include <string>
#include <vector>

#include "forecast/forecast.hpp"
#include "report/results/results.hpp"

namespace stepcast {

/// Adds to the rows (one for each of `points`) of points that are alternatives the columns
/// `best_probability`, `ratio_to_best` and its
/// `_low` and `_high`. Alternatives have equally many workers and the same network, and differ in other
/// swept keys; points that do not fit into memory are none. All points share the draws and the samples of the
/// discrepancy term, so a ratio has less spread than each of its rates. The best is the alternative with the
/// highest median of samples per second.
void add_choices(const Scenario& scenario, const std::vector<std::size_t>& points, const Simulations& all,
                 Results& results);

/// One line for each number of workers with alternatives: the fewest that contain the best with a probability
/// of 90 %, at most eight by name.
std::vector<std::string> equal_choices(const Results& results);

/// The number of workers beyond which a further doubling gives less than `factor` times the samples per
/// second, in each sample, from 5 % to 95 %; the largest of the sweep where none gives less.
struct WorthyWorkers {
  double low = 0, median = 0, high = 0;
  double largest = 0;  ///< of the sweep
};

/// Of a sweep of workers alone, with three points or more; otherwise nothing.
std::optional<WorthyWorkers> worthy_workers(const Scenario& scenario, const std::vector<std::size_t>& points,
                                            const Simulations& all, double factor);

/// "A further doubling gives less than 1.5 times beyond 64 [32 .. 64] workers."
std::string to_string(const WorthyWorkers& workers, double factor);

}  // namespace stepcast
