#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "core/typed_numbers.hpp"
#include "kernels/network/backend.hpp"
#include "models/cost/device.hpp"
#include "models/layer_times/derived_trace.hpp"
#include "models/layer_times/trace.hpp"
#include "models/network/model.hpp"

namespace stepcast {

/// Selects the captures of one model, precision and layout in a folder.
struct TraceChoice {
  std::filesystem::path folder;
  std::string model, precision, layout;
};

/// Reads the selected captures. @throws InputError if there are none or they come from several devices
std::vector<Trace> read_traces(const TraceChoice& choice);

/// Models with captures at two or more batch sizes in the folder.
std::vector<std::string> models_in(const TraceChoice& choice);

/// One GPU's step at a batch size, from traces of one model, precision and layout at other batch sizes.
struct StepForecast {
  Seconds step;  ///< whole step: all layers and passes
  std::int64_t below =
      0;  ///< nearest captured batch sizes below and above; both equal the batch size if it was captured
  std::int64_t above = 0;
  std::vector<std::string> flags = {};  ///< doubts of the traces
};

/// The sum of the layer times that `stepcast run` uses for this batch size (`layer_times`, linear between the
/// two captured batch sizes on its sides).
/// @param traces  at least one, any order
/// @throws InputError for a batch size outside the captured ones: nothing is extrapolated; or for traces of
///         other layers than the model's
StepForecast forecast_step(const Model& model, const std::vector<Trace>& traces, std::int64_t batch);

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
