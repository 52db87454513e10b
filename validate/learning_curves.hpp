#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/plot_curves.hpp"
#include "report/results.hpp"

namespace stepcast {

/// Rows of `learning.jsonl` with `predicted_seconds`: when the forecast has the same mini-batch end. A
/// forecast's `step_seconds` is that of a block where a strategy trains in blocks.
Results with_forecast(const Results& learning, const Results& predicted);

/// What a point came to.
struct Learned {
  std::string point;              ///< its name, without what all points share
  std::int64_t mini_batches = 0;  ///< of a worker
  double seconds = 0, loss = 0;   ///< at the end
  std::optional<double> accuracy;
  double common_loss = 0;             ///< the lowest that every point reached
  double seconds_to_common_loss = 0;  ///< when this one was first there
};
std::vector<Learned> what_was_learned(const Results& learning);

/// A curve for each point.
CurvePlot loss_curves(const Results& learning);

/// "POINT: loss 2.30 to 0.12, accuracy 97.3 % after 200 mini-batches in 3.2 s (forecast 3.1 s)", a line each.
std::vector<std::string> learning_lines(const Results& learning);

}  // namespace stepcast
