#pragma once

#include <string>
#include <vector>

#include "report/results.hpp"

namespace stepcast {

/// One point, forecast beside measurement.
struct PointOutcome {
  std::string point, strategy;
  int ranks = 0, repeats = 0, disturbed = 0;  ///< disturbed: runs that were thrown away
  double predicted = 0, measured = 0;         ///< seconds of a step, or Joining::column; measured: median
  double low = 0, high = 0;                   ///< 95 % bootstrap interval of that median
  double predicted_compute = 0, measured_compute = 0;  ///< of all workers, mean [s]; 0 where unknown
  double predicted_waiting = 0, measured_waiting = 0;  ///< of the slowest beyond that mean [s]

  double error() const { return predicted / measured - 1; }
};

/// "-1.6 +1.2": how far the interval reaches from the measured median [%].
std::string interval_text(const PointOutcome& outcome);

/// How rows of a forecast and of measurements meet.
struct Joining {
  std::vector<std::string> by = {"point"};  ///< the columns that tell points apart
  std::string column = "step_seconds";      ///< what is compared
};

/// Joins the forecast's rows with samples, several of which may be of one point. Samples whose column `kept`
/// says other than "true" count as disturbed. Left out: points without a number above 0 in both, and rows of
/// the forecast that agree in `by` with an earlier one.
std::vector<PointOutcome> outcomes_of(const Results& predicted, const Results& samples,
                                      const Joining& joining = {});

/// The columns of validate/data: scenario, point, strategy, ranks, cluster, repeats, predicted_seconds, ...
Results results_of(const std::vector<PointOutcome>& outcomes, const std::string& scenario,
                   const std::string& cluster);

/// Share of the pairs of points whose measured intervals do not overlap that the forecast puts in the right
/// order; and how many such pairs there are.
struct SpeedOrder {
  int pairs = 0, right = 0;
};
SpeedOrder order_of(const std::vector<PointOutcome>& outcomes);

/// "synchronous: 12 points: |error| mean 2.1 %, ...", a line for each strategy and one for all.
std::vector<std::string> summary_lines(const std::vector<PointOutcome>& outcomes);

}  // namespace stepcast
