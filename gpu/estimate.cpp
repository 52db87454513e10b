#include "gpu/estimate.hpp"

#include "core/error.hpp"
#include "gpu/devices.hpp"
#include "models/derive.hpp"
#include "models/library.hpp"
#include "models/trace_times.hpp"
#include "scenarios/data_files.hpp"

namespace stepcast {
namespace {

// Assumed: no GPU has run this yet.
constexpr double kNetworkSeconds = 1.5;  // libraries' handles, memory, parameters, nvidia-smi, rising clocks
constexpr int kSearchSteps = 25;  // some ten algorithms for each of a convolution's passes, timed twice

}  // namespace

Estimate::Estimate(const std::string& gpu) {
  try {
    const std::filesystem::path models = data_folder() / "models";
    device_ = load_device(models, device_file_of(gpu));
    calibration_ = load_calibration(*device_, models);
  } catch (const InputError& error) {
    device_.reset();
    why_not_ = error.what();
  }
}

Seconds Estimate::of(const Model& model, std::int64_t batch, int steps) const {
  if (!device_) return {0};
  const Seconds step = step_time(derive(model, batch, *device_, calibration_, {}));
  return Seconds{kNetworkSeconds} + static_cast<double>(kSearchSteps + steps) * step;
}

}  // namespace stepcast
