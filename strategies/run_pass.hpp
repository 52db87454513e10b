#pragma once

#include "strategies/part.hpp"
#include "strategies/pieces.hpp"
#include "strategies/worker.hpp"

namespace stepcast {

/// How a worker gets through a pass of shared layers.
struct PassRun {
  Work pass{};
  Seconds exchange_overhead;  ///< of the device for every exchange: launches
  bool sums = false;          ///< gradients are complete: their sums start beside what is left
};

/// Goes through the stretches of a pass: each an exchange, the work beside it, and the work after it. Marks
/// "compute" and what the exchanges are booked under. Sums that were started are appended.
Part run_pass(Worker& worker, const Passes& passes, const PassRun& run, std::vector<Pending>& sums);

}  // namespace stepcast
