#pragma once

#include <vector>

namespace stepcast {

/// Dates at which each worker ended its steps; empty for ranks that do not train. What one step took, as the
/// simulator counts it (sim/step_book.hpp):
///
/// Steps that all take together: from when the last worker has ended one to when the last has ended the next;
/// the median of all but the first.
double synchronous_step_seconds(const std::vector<std::vector<double>>& ends);

/// Steps each at its own pace: while the worker that ends all of its first makes the second half of them,
/// over the steps of all workers in that time, parts of steps included, times the workers. In the first half
/// workers drift apart; half of the steps should hold whole periods of exchanges.
double asynchronous_step_seconds(const std::vector<std::vector<double>>& ends);

}  // namespace stepcast
