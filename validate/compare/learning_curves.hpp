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

/// One training: a point with one seed (column `seed`; rows without it have seed 0).
struct LearnedRun {
  std::string point;  ///< its full name
  std::int64_t seed = 0;
  std::int64_t mini_batches = 0;                 ///< of a worker
  double seconds = 0, samples = 0, loss = 0;     ///< at the end
  std::optional<double> accuracy = {};           ///< at the end
  std::optional<double> loss_low_energy = {};    ///< of a generator, at the end
  std::optional<double> seconds_to_target = {};  ///< when an evaluation first shows the target loss
  std::optional<double> samples_to_target = {};  ///< samples of all workers until then
};

/// The lowest loss that every training reached.
double common_loss(const Results& learning);

/// The trainings in the order of their first rows. @param target_loss  nothing: no target is reached
std::vector<LearnedRun> learned_runs(const Results& learning, std::optional<double> target_loss);

/// The result of one point's learning: medians over its seeds.
struct LearnedPoint {
  std::string point;              ///< name of the point, without the words that all points share
  std::int64_t mini_batches = 0;  ///< of a worker
  std::size_t seeds = 0;
  double seconds = 0, samples = 0, loss = 0;  ///< at the end
  double lowest_loss = 0, highest_loss = 0;   ///< at the end, over the seeds
  std::optional<double> accuracy;
  std::optional<double> seconds_to_target;  ///< missing if half of the seeds or more never reach the target
  std::optional<double> samples_to_target;
};
std::vector<LearnedPoint> learned_points(const std::vector<LearnedRun>& runs);

/// A curve for each point: the medians over its seeds, and their range as a band.
CurvePlot loss_curves(const Results& learning);

/// A line for each point: "POINT: loss 2.30 to 0.12, accuracy 97.3 % after 200 mini-batches of a worker
/// in 3.2 s (forecast 3.1 s); loss 0.15 after 2.9 s (forecast 2.8 s)". The second loss is the lowest that all
/// points reach.
std::vector<std::string> learning_lines(const Results& learning);

}  // namespace stepcast
