#pragma once

#include <vector>

namespace stepcast {

/// The statistic that makes one step time of the times of several steps. The median is taken where steps
/// differ only by accident. Where kernels compute, the mean is taken: cores that switch between two speeds
/// make two kinds of steps, and the median would be that of one kind or of the other.
enum class StepStatistic { median, mean };

/// Step time of a synchronous strategy, counted as the simulator does (forecast/simulate_point.cpp): the
/// time from the moment when the last worker has ended one step to the moment when the last worker has ended
/// the next. The first step does not count.
/// @param ends  times at which each rank ended its steps [s]; empty for ranks that do not train
/// @throws std::invalid_argument for fewer than two steps
double synchronous_step_seconds(const std::vector<std::vector<double>>& ends, StepStatistic statistic);

/// Step time of workers that step independently, counted as the simulator does
/// (strategies/plan/run_conditions.hpp).
/// @param ends  as above
/// @throws std::invalid_argument for a worker with a single step, which says nothing about the time before it
double asynchronous_step_seconds(const std::vector<std::vector<double>>& ends);

/// Time by which the slowest rank of a step computes longer than the mean over `workers`; mean over all steps
/// [s].
/// @param compute  for every rank, the compute time of each step [s]
double waiting_seconds(const std::vector<std::vector<double>>& compute, int workers);

}  // namespace stepcast
