#pragma once

#include <string>
#include <vector>

#include "kernels/capture.hpp"

namespace stepcast {

/// Flags the trace where the 95 % bootstrap interval of (sum over layers) / (step without timers inside)
/// leaves 1 +- options.tolerance. Entry i of both lists belongs to one pair of steps [s].
void flag_difference(const std::vector<double>& inside, const std::vector<double>& outside,
                     const CaptureOptions& options, Trace& trace);

/// What the simulator starts from is the sum of medians, which scattered samples can move away from the step.
void flag_medians(const CaptureOptions& options, Trace& trace);

/// The samples of a pass of a layer.
PassSamples& samples_of(LayerTrace& layer, Pass pass);

/// "2026-11-21", UTC.
std::string today();

}  // namespace stepcast
