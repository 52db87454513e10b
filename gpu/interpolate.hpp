#pragma once

#include <cstdint>
#include <vector>

#include "core/units.hpp"
#include "models/trace.hpp"

namespace stepcast {

/// One GPU's step at a batch size, from traces of one model, precision and layout at others.
struct StepForecast {
  Seconds step;            ///< all layers and passes
  Seconds update;          ///< the optimizer's part of it
  std::int64_t below = 0;  ///< batch sizes captured on both sides; equal where it was captured itself
  std::int64_t above = 0;
};

/// Between the two captured batch sizes on its sides, every layer's pass is taken to grow in a straight line,
/// and so is the ratio of steps without events inside to the sum over layers: events make the host slower,
/// which is in the sum wherever the GPU waits for the host.
/// @param traces  at least one, any order
/// @throws InputError for a batch size outside the captured ones: nothing is extrapolated
StepForecast forecast_step(const std::vector<Trace>& traces, std::int64_t batch);

}  // namespace stepcast
