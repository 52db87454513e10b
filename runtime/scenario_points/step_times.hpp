#pragma once

#include <vector>

#include "report/statistics/statistics.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

/// Step time of a synchronous strategy, counted as the simulator does (forecast/simulate_point.cpp): the
/// time from the moment when the last worker has ended one step to the moment when the last worker has ended
/// the next. The first step does not count.
/// @param ends  times at which each rank ended its steps [s]; empty for ranks that do not train
/// @throws std::invalid_argument for fewer than two steps
double synchronous_step_seconds(const std::vector<std::vector<double>>& ends, StepStatistic statistic);

/// Step time of workers that step independently, counted as the simulator does (asynchronous_step_seconds).
/// @param ends  as above
/// @throws std::invalid_argument for a worker with a single step, which says nothing about the time before it
double independent_step_seconds(const Plan& plan, const std::vector<std::vector<double>>& ends);

// The first step of a real run counts neither in the step time nor in the parts below, as in the simulator.
// Of a run of a single step, that step counts.

/// Compute time of a step: mean over its steps and over `workers` [s].
/// @param compute  for every rank, the compute time of each step [s]; empty for ranks that do not train
double mean_compute_seconds(const std::vector<std::vector<double>>& compute, int workers);

/// Time by which the slowest rank of a step computes longer than the mean over `workers`; mean over the steps
/// [s].
/// @param compute  as above
double waiting_seconds(const std::vector<std::vector<double>>& compute, int workers);

}  // namespace stepcast
