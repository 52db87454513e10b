#include "sim/workers/slowest_device.hpp"

#include <boost/math/special_functions/erf.hpp>
#include <cmath>
#include <numbers>

namespace stepcast {

double slowest_device_factor(const Plan& plan, const Noise& noise) {
  const double devices = plan.devices;
  if (plan.asynchronous || devices <= 1) return 1;
  const double u = (devices - 0.375) / (devices + 0.25);
  const double deviations = -std::numbers::sqrt2 * boost::math::erfc_inv(2 * u);
  return std::exp(noise.device_spread * deviations);
}

void attribute_to_slowest(double factor, std::vector<StepSeconds>& steps) {
  for (StepSeconds& step : steps) {
    const double of_median_device = step.compute / factor;
    step.waiting += step.compute - of_median_device;
    step.compute = of_median_device;
  }
}

}  // namespace stepcast
