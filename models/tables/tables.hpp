#pragma once

#include <string>

#include "models/layer_times/derived_trace.hpp"
#include "models/layer_times/trace.hpp"

namespace stepcast {

/// Layers with kind, output shape, trainable parameters, forward and backward work, output bytes (fp32, one
/// sample); totals; memory of a training process at batch 1.
std::string model_table(const Model& model);

/// Median and spread of every pass ((90th - 10th percentile) / median); work per second if the model is
/// given; totals; flags.
std::string trace_table(const Trace& trace, const Model* model);

/// Roofline data, memory and published rates, with the predictions of the roofline rule if a calibration is
/// given.
std::string device_table(const Device& device, const Calibration* calibration);

}  // namespace stepcast
