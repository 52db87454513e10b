#pragma once

#include <array>

#include "models/model.hpp"
#include "models/trace.hpp"

namespace stepcast {

/// Forward, backward-data, backward-weights, update.
std::array<const PassSamples*, 4> passes(const LayerTrace& layer);

/// Middle of the samples, 0 where there are none [s].
Seconds median(const std::vector<double>& samples);

/// Sum of the medians of all layers and passes: one training step.
Seconds step_time(const Trace& trace);

/// Throws InputError unless the trace has the layers of the model, same names, same order.
void check_fits(const Trace& trace, const Model& model);

}  // namespace stepcast
