#pragma once

#include "models/calibrate.hpp"
#include "models/trace.hpp"

namespace stepcast {

/// The noise of a derived trace: relative samples of a captured one, at most `samples` of them.
struct TraceNoise {
  const Trace* captured = nullptr;  ///< null: one sample a pass, no noise
  int samples = 8;
};

/// Layer times of a model on a device that was not at hand, by the rule of models/roofline.hpp.
///
/// Each pass gets the rule's time; with noise, that time multiplied by sample / median of the same layer and
/// pass of the captured trace (of the whole step, where the captured layer has no such pass). `source` tells
/// the rule, the efficiency and the error against every published rate of the device; flags warn of
/// extrapolation.
/// @throws InputError if the captured trace is not one of this model
Trace derive(const Model& model, std::int64_t batch, const Device& device, const Calibration& calibration,
             const TraceNoise& noise);

}  // namespace stepcast
