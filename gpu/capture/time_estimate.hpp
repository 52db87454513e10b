#pragma once

#include <optional>
#include <string>

#include "kernels/network/backend.hpp"
#include "models/layer_times/derived_trace.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// Estimates how long captures take on a GPU that models/devices describes, by the rule for derived traces,
/// so that a caller with a time limit starts only what fits.
class TimeEstimate {
 public:
  /// @param gpu  name of the GPU; if models/devices has no file for it, all estimates are zero
  TimeEstimate(const std::string& gpu, GpuPrecision precision);

  /// Time to build a network, which chooses each convolution's algorithms, and to run this number of steps.
  Seconds of(const Model& model, std::int64_t batch, int steps) const;
  /// Why estimates are zero; empty if they are not.
  const std::string& why_not() const { return why_not_; }

 private:
  GpuPrecision precision_;
  std::optional<Device> device_;
  Calibration calibration_;
  std::string why_not_;
};

/// Passes of convolutions for which algorithms are chosen: each shape of a pass counts once.
int convolution_passes(const Model& model);

}  // namespace stepcast
