#pragma once

#include <string>

#include "models/calibrate.hpp"
#include "models/trace.hpp"

namespace stepcast {

/// Layers with kind, output shape, trainable parameters, forward and backward work, output bytes (fp32, one
/// sample); totals; memory of a training process at batch 1.
std::string model_table(const Model& model);

/// Median and spread (90th less 10th percentile, of the median) of every pass; work per second where the
/// model is given; totals; flags.
std::string trace_table(const Trace& trace, const Model* model);

/// Roofline, memory, and published rates; beside them what the rule gives, where the calibration is given.
std::string device_table(const Device& device, const Calibration* calibration);

}  // namespace stepcast
