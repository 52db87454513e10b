#pragma once

#include <vector>

#include "kernels/network/network.hpp"

namespace stepcast {

/// Wall clock and CPU clock, read together [s].
struct Instant {
  double wall = 0;  ///< CLOCK_MONOTONIC
  double cpu = 0;   ///< CLOCK_PROCESS_CPUTIME_ID: all threads of the process, including OpenMP's
};

Instant now();

/// The interval from `begin` to `end` on both clocks.
Instant between(const Instant& begin, const Instant& end);

/// Time that one call of `now` adds to an interval: the median of 1001 calls.
Instant cost_of_now();

/// Times of one training step.
struct StepTimes {
  Instant total;
  std::vector<Instant> passes;  ///< in the order of `passes_in_order`; empty if only the whole step was timed
};

struct LayerPass {
  std::size_t layer;
  Pass pass;
};

/// The passes of a step, in the order in which they run.
std::vector<LayerPass> passes_in_order(const Network& network);

/// Times a step as a whole. @param exchange  its time is not counted
StepTimes time_whole_step(Network& network, const StepExchange& exchange = {});
/// Times every pass of a step. @param clock_cost  cost of one call of `now`, which is subtracted from every
/// pass (not below zero)
StepTimes time_passes_of_step(Network& network, const Instant& clock_cost, const StepExchange& exchange = {});

Instant sum_over_passes(const StepTimes& step);

/// Relative difference of wall time and CPU time per thread: |wall - CPU / threads| / wall.
double disturbance(const StepTimes& step, int threads);

}  // namespace stepcast
