#pragma once

#include <optional>
#include <string>

#include "models/calibrate.hpp"

namespace stepcast {

/// About how long things take on a GPU that models/devices knows, by the rule for derived traces: what fits
/// into a given time is known before it is begun.
class Estimate {
 public:
  /// @param gpu  its name; where models/devices has no file for it, everything is estimated to take no time
  explicit Estimate(const std::string& gpu);

  /// Making a network, which times each convolution's algorithms, and running so many steps.
  Seconds of(const Model& model, std::int64_t batch, int steps) const;
  /// Why nothing is known; empty where it is.
  const std::string& why_not() const { return why_not_; }

 private:
  std::optional<Device> device_;
  Calibration calibration_;
  std::string why_not_;
};

}  // namespace stepcast
