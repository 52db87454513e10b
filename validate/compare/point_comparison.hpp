#pragma once

#include <string>
#include <vector>

#include "report/results/results.hpp"
#include "report/statistics/statistics.hpp"
#include "report/text/display_text.hpp"
#include "validate/compare/learning_curves.hpp"

namespace stepcast {

/// Forecast and measurement of one point.
struct PointComparison {
  std::string point, strategy;
  int ranks = 0, repeats = 0, disturbed = 0;           ///< disturbed: runs that do not count
  double predicted = 0, measured = 0;                  ///< seconds of a step, or JoinKeys::column
  double low = 0, high = 0;                            ///< 95 % bootstrap interval of `measured`
  double predicted_compute = 0, measured_compute = 0;  ///< mean over all workers [s]; 0: unknown
  double predicted_waiting = 0,
         measured_waiting = 0;  ///< compute time of the slowest worker beyond that mean [s]

  double error() const { return predicted / measured - 1; }
};

/// "-1.6 +1.2": the ends of the interval relative to the measured value [%].
std::string interval_text(const PointComparison& comparison);

/// The keys by which rows of a forecast and of measurements are joined.
struct JoinKeys {
  std::vector<std::string> by = {"point"};          ///< columns that identify a point
  std::string column = "step_seconds";              ///< the compared column
  StepStatistic statistic = StepStatistic::median;  ///< makes one value of the samples of a point
};

/// Joins the forecast's rows with samples, of which a point may have several. Samples whose column `kept` is
/// not "true" count as disturbed. Left out are points without a number above 0 in both tables, and rows of
/// the forecast that agree in `by` with an earlier row.
std::vector<PointComparison> compare_points(const Results& predicted, const Results& samples,
                                            const JoinKeys& keys = {});

/// Rows with the columns of validate/data: scenario, point, strategy, ranks, cluster, repeats,
/// predicted_seconds, ...
Results results_of(const std::vector<PointComparison>& comparisons, const std::string& scenario,
                   const std::string& cluster);

/// The number of pairs of points whose measured intervals do not overlap, and the number of these pairs that
/// the forecast puts in the right order.
struct SpeedOrder {
  int pairs = 0, right = 0;
};
SpeedOrder order_of(const std::vector<PointComparison>& comparisons);

/// A line for each strategy and one for all: "synchronous: 12 points: |error| mean 2.1 %, ...".
std::vector<std::string> summary_lines(const std::vector<PointComparison>& comparisons);

/// A row for each training that was forecast and measured: point, seed, target_loss; when it reached this
/// loss, in seconds and in samples of all workers; its loss at the end. A cell is empty if the loss was not
/// reached.
Results times_to_loss(const std::string& scenario, double target_loss,
                      const std::vector<LearnedRun>& predicted, const std::vector<LearnedRun>& measured);

/// The medians over the seeds of each point.
/// @param predicted  the same points as `measured`, in the same order
Table times_to_loss_table(double target_loss, const std::vector<LearnedPoint>& predicted,
                          const std::vector<LearnedPoint>& measured);

}  // namespace stepcast
