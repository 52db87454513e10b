#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/plots/loss_curves.hpp"
#include "report/results/results.hpp"

namespace stepcast {

/// Adds `predicted_seconds` to the rows of `learning.jsonl`: when the same mini-batch ends in the forecast.
/// For strategies that train in blocks, `step_seconds` of the forecast is the time of a block.
Results with_forecast(const Results& learning, const Results& predicted);

/// The result of one point's learning.
struct LearnedPoint {
  std::string point;              ///< name of the point, without what all points share
  std::int64_t mini_batches = 0;  ///< of a worker
  double seconds = 0, loss = 0;   ///< at the end
  std::optional<double> accuracy;
  double common_loss = 0;             ///< lowest loss that every point reached
  double seconds_to_common_loss = 0;  ///< when this point first reached it
};
std::vector<LearnedPoint> learned_points(const Results& learning);

/// One curve for each point.
CurvePlot loss_curves(const Results& learning);

/// A line for each point: "POINT: loss 2.30 to 0.12, accuracy 97.3 % after 200 mini-batches of a worker
/// in 3.2 s (forecast 3.1 s)".
std::vector<std::string> learning_lines(const Results& learning);

}  // namespace stepcast
