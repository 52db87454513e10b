#pragma once

#include <vector>

#include "kernels/network.hpp"
#include "kernels/stopwatch.hpp"

namespace stepcast {

/// One training step as the clocks saw it.
struct StepTimes {
  Instant total;
  std::vector<Instant>
      passes;  ///< in the order of `passes_in_order`; empty if the step was timed from outside only
};

struct PassOfLayer {
  std::size_t layer;
  Pass pass;
};

/// The passes that a step runs, in order.
std::vector<PassOfLayer> passes_in_order(const Network& network);

/// @param exchange  its time is not counted
StepTimes time_step_outside(Network& network, const StepExchange& exchange = {});
/// @param clock_cost what one call of `now` adds, taken off every pass and not below zero
StepTimes time_step_inside(Network& network, const Instant& clock_cost, const StepExchange& exchange = {});

Instant sum_over_passes(const StepTimes& step);

/// |wall - CPU / threads| / wall.
double disturbance(const StepTimes& step, int threads);

}  // namespace stepcast
