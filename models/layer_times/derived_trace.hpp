#pragma once

#include "models/layer_times/roofline_calibration.hpp"
#include "models/layer_times/trace.hpp"

namespace stepcast {

/// Noise of a derived trace: the relative samples of a captured trace, at most `samples` of them.
struct TraceNoise {
  const Trace* captured = nullptr;  ///< null: one sample for each pass, without noise
  int samples = 8;
};

/// Layer times of a model on a device where they were not measured, by the roofline rule
/// (models/cost/roofline.hpp).
///
/// Each pass gets the time of the rule. With noise, that time is multiplied by sample / median of the same
/// layer and pass of the captured trace, or of the whole step if the captured layer has no such pass.
/// `source` names the rule, the efficiency and the error against every published rate of the device. Flags
/// warn of extrapolation.
/// @throws InputError if the captured trace is of another model
Trace derive(const Model& model, std::int64_t batch, const Device& device, const Calibration& calibration,
             const TraceNoise& noise);

}  // namespace stepcast
