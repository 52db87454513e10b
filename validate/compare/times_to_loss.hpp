#pragma once

#include <string>
#include <vector>

#include "report/results/results.hpp"
#include "report/text/display_text.hpp"
#include "validate/compare/learning_curves.hpp"

namespace stepcast {

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
