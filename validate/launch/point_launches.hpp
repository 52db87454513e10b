#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "core/error.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "validate/launch/launcher.hpp"

namespace stepcast {

/// Runs each point in ranks of its own, so that ranks that die or hang cost that point alone. These ranks use
/// the links and traces in the job's folder, and measure only what is not there. The error of a point is
/// printed when it fails. The output of a point's ranks is kept in the file point-N.log, where N counts the
/// scenario's points from 1.
/// @param job          of one launch; its arguments, its log and its stage are set for each point
/// @param before_runs  called when the ranks of a point wait for their runs; gets the point's index in
///                     `validation`; may be empty
/// @return the names of the points that failed
/// @throws InputError if a rank reports one; Interrupted
std::vector<std::string> run_points_apart(const RankJob& job, const Validation& validation,
                                          const ValidationOptions& options,
                                          const std::function<void(std::size_t index)>& before_runs);

/// The error that ends a command whose other points have their results.
RankLost points_lost(const std::vector<std::string>& failed, std::size_t points);

}  // namespace stepcast
