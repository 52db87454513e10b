#pragma once

#include <vector>

namespace stepcast {

/// What one of several steps took: their median where nothing varies but by accident; where kernels compute,
/// the mean, since cores that change between two speeds make two kinds of steps, and the median of such a run
/// is the one kind or the other.
enum class StepStatistic { median, mean };

/// Dates at which each worker ended its steps; empty for ranks that do not train. What one step took, as the
/// simulator counts it (sim/step_book.hpp):
///
/// Steps that all take together: from when the last worker has ended one to when the last has ended the next;
/// all but the first.
double synchronous_step_seconds(const std::vector<std::vector<double>>& ends, StepStatistic statistic);

/// Steps each at its own pace: strategies/own_pace.hpp.
/// @throws std::invalid_argument for a worker of one step: it says nothing of the time before
double asynchronous_step_seconds(const std::vector<std::vector<double>>& ends);

/// What the slowest rank of a step computes beyond the mean over `workers`, mean over steps.
/// @param compute  of every rank, the seconds of each step
double waiting_seconds(const std::vector<std::vector<double>>& compute, int workers);

}  // namespace stepcast
