#pragma once

#include <map>
#include <string>
#include <vector>

#include "models/device.hpp"
#include "models/model.hpp"

namespace stepcast {

/// A published rate beside what the rule gives.
struct RateError {
  DeviceRate rate;
  double predicted = 0;  ///< samples/s

  double error() const { return predicted / rate.samples_per_second - 1; }  ///< a fraction
};

/// The error in percent, "+1.6 %".
std::string error_text(const RateError& rate);

/// The efficiency of a device, and how well the rule then meets its published rates.
struct Calibration {
  double efficiency = 1;
  std::string fitted_on;           ///< name of the device whose rates were used
  std::vector<RateError> errors;   ///< of that device, all rates
  bool convolutions_seen = false;  ///< whether a calibrating network has convolutions
};

/// One factor for the whole device: least squares of log(predicted rate / published rate) over its
/// calibrating rates.
/// @param models  the networks that the rates name
/// @throws std::invalid_argument if the device has no calibrating rate or a network is missing
Calibration calibrate(const Device& device, const std::map<std::string, Model>& models);

}  // namespace stepcast
