#include <fmt/format.h>

#include "models/table.hpp"

namespace stepcast {
namespace {

std::string rate_row(const DeviceRate& rate, const RateError* rule) {
  std::string text = fmt::format("{:20} {:>7} {:>12.6g}", rate.model, rate.batch, rate.samples_per_second);
  if (rule != nullptr) text += fmt::format(" {:>12.4g} {:>10}", rule->predicted, error_text(*rule));
  return text +
         fmt::format("  {:9}  {}\n", rate.use == DeviceRate::Use::check ? "check" : "calibrate", rate.source);
}

std::string efficiency_line(const Device& device, const Calibration& calibration) {
  return fmt::format("efficiency        {:.3f}, {}\n", calibration.efficiency,
                     calibration.fitted_on == device.name
                         ? "fitted on the rates below"
                         : "assumed equal to that of " + calibration.fitted_on);
}

}  // namespace

std::string device_table(const Device& device, const Calibration* calibration) {
  std::string text = fmt::format(
      "{}\n"
      "peak              {:.4g} Tflop/s fp32\n"
      "memory bandwidth  {:.4g} GB/s\n"
      "memory            {:.4g} GiB, {:.4g} GiB usable\n"
      "launch overhead   {:.3g} us\n",
      device.name, device.peak.value / 1e12, device.memory_bandwidth.value / 1e9,
      device.memory.value / 0x1p30, device.usable_memory.value / 0x1p30, device.launch_overhead.value * 1e6);
  if (calibration != nullptr) text += efficiency_line(device, *calibration);
  if (device.rates.empty()) return text;
  const bool ruled = calibration != nullptr && calibration->fitted_on == device.name;
  text += fmt::format("\n{:20} {:>7} {:>12}{}  {:9}  {}\n", "published rates", "batch", "samples/s",
                      ruled ? fmt::format(" {:>12} {:>10}", "rule", "error") : "", "use", "source");
  for (std::size_t i = 0; i < device.rates.size(); ++i) {
    text += rate_row(device.rates[i], ruled ? &calibration->errors.at(i) : nullptr);
  }
  return text;
}

}  // namespace stepcast
