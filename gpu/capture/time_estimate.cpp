#include "gpu/capture/time_estimate.hpp"

#include "core/error.hpp"
#include "gpu/capture/devices.hpp"
#include "models/layer_times/derived_trace.hpp"
#include "models/layer_times/trace.hpp"
#include "models/loader.hpp"
#include "scenarios/reader/library.hpp"

namespace stepcast {
namespace {

// Assumptions, not measurements.
constexpr double kSetUpSeconds =
    1.5;                          // library handles, memory, parameters, nvidia-smi, warm-up of the clocks
constexpr int kSearchSteps = 25;  // about ten algorithms for each pass of a convolution, timed twice

/// Share of the step in fp32 without tensor cores, which the rule for derived traces estimates, that a step
/// in this precision takes: products run on tensor cores, and 2-byte precisions move half the bytes of
/// activations. Assumed, too.
double share_of_f32(GpuPrecision precision) {
  if (precision == GpuPrecision::f32) return 1;
  return precision == GpuPrecision::tf32 ? 0.5 : 0.3;
}

}  // namespace

TimeEstimate::TimeEstimate(const std::string& gpu, GpuPrecision precision) : precision_(precision) {
  try {
    const std::filesystem::path models = data_folder() / "models";
    device_ = load_device(models, device_file_of(gpu));
    calibration_ = load_calibration(*device_, models);
  } catch (const InputError& error) {
    device_.reset();
    why_not_ = error.what();
  }
}

Seconds TimeEstimate::of(const Model& model, std::int64_t batch, int steps) const {
  if (!device_) return {0};
  const Seconds step = step_time(derive(model, batch, *device_, calibration_, {}));
  return Seconds{kSetUpSeconds} + static_cast<double>(kSearchSteps + steps) * share_of_f32(precision_) * step;
}

}  // namespace stepcast
