#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/cost/device.hpp"
#include "models/layer_times/trace.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// A published training rate, and the prediction of the roofline rule.
struct RateError {
  DeviceRate rate;
  double predicted = 0;  ///< samples/s

  double error() const { return predicted / rate.samples_per_second - 1; }  ///< relative error, as a fraction
};

/// The error in percent, such as "+1.6 %".
std::string error_text(const RateError& rate);

/// The efficiency of a device, and the errors of the rule against its published rates.
struct Calibration {
  double efficiency = 1;
  std::string fitted_on;           ///< name of the device whose rates were fitted
  std::vector<RateError> errors;   ///< errors against all rates of that device
  bool convolutions_seen = false;  ///< whether a network of the fitted rates has convolutions
};

/// Fits one efficiency for the whole device: least squares of log(predicted rate / published rate) over its
/// calibrating rates.
/// @param models  networks by the names that the rates use
/// @throws std::invalid_argument if the device has no calibrating rate or a network is missing
Calibration calibrate(const Device& device, const std::map<std::string, Model>& models);

/// Compares the rule with all published rates of a device with KernelShares. Nothing is fitted, and the
/// efficiency is 1.
Calibration rate_errors(const Device& device, const std::map<std::string, Model>& models);

/// Noise of a derived trace: the relative samples of a captured trace, at most `samples` of them.
struct TraceNoise {
  const Trace* captured = nullptr;  ///< null: one sample for each pass, without noise
  int samples = 8;
};

/// The device with the kernels that run a part of a network: Megatron-LM's fused softmax needs a multiple of
/// 4 matrices of scores (heads x samples), and at most 4,096 columns, else each operation is a kernel and
/// softmax is fp32. Source: Megatron-LM, megatron/model/fused_softmax.py, is_kernel_available.
Device with_available_softmax(Device device, const Model& part, std::int64_t batch);

/// Layer times of a model on a device where they were not measured, by the roofline rule
/// (models/cost/roofline.hpp).
///
/// Each pass gets the time of the rule. With noise, that time is multiplied by sample / median of the same
/// layer and pass of the captured trace, or of the whole step if the captured layer has no such pass.
/// The host's times are the operators of a layer (models/work/host_operators.hpp) x Device::host_operation.
/// `source` names the rule, the efficiency and the error against every published rate of the device. Flags
/// warn of extrapolation.
/// @throws InputError if the captured trace is of another model
Trace derive(const Model& model, std::int64_t batch, const Device& device, const Calibration& calibration,
             const TraceNoise& noise);

}  // namespace stepcast
