#include "models/layer_times/roofline_calibration.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "models/cost/roofline.hpp"

namespace stepcast {
namespace {

const Model& model_of(const DeviceRate& rate, const std::map<std::string, Model>& models) {
  const auto found = models.find(rate.model);
  if (found == models.end()) throw std::invalid_argument("calibrate: missing model " + rate.model);
  return found->second;
}

double predicted_rate(const Model& model, const DeviceRate& rate, const Device& device, double efficiency) {
  return static_cast<double>(rate.batch) / roofline_step(model, rate.batch, device, efficiency).value;
}

/// Sum over the calibrating rates of log(predicted / published)^2.
double misfit(const Device& device, const std::map<std::string, Model>& models, double efficiency) {
  double sum = 0;
  for (const DeviceRate& rate : device.rates) {
    if (rate.use != DeviceRate::Use::calibrate) continue;
    const double predicted = predicted_rate(model_of(rate, models), rate, device, efficiency);
    sum += std::pow(std::log(predicted / rate.samples_per_second), 2);
  }
  return sum;
}

/// Golden-section search of log(efficiency); predicted rates rise with it, so there is one minimum.
double best_efficiency(const Device& device, const std::map<std::string, Model>& models) {
  constexpr double kGolden = 0.6180339887498949;
  double low = std::log(1e-3), high = std::log(1e1);
  for (int i = 0; i < 60; ++i) {
    const double left = high - kGolden * (high - low), right = low + kGolden * (high - low);
    const bool go_left = misfit(device, models, std::exp(left)) < misfit(device, models, std::exp(right));
    (go_left ? high : low) = go_left ? right : left;
  }
  return std::exp((low + high) / 2);
}

bool has_convolutions(const Model& model) {
  return std::any_of(model.layers.begin(), model.layers.end(),
                     [](const Layer& layer) { return layer.kind == LayerKind::convolution; });
}

}  // namespace

std::string error_text(const RateError& rate) {
  const double tenths = std::round(1000 * rate.error()) + 0.0;  // adding zero turns -0 into 0
  return fmt::format("{:+.1f} %", tenths / 10);
}

Calibration calibrate(const Device& device, const std::map<std::string, Model>& models) {
  const bool any = std::any_of(device.rates.begin(), device.rates.end(),
                               [](const DeviceRate& rate) { return rate.use == DeviceRate::Use::calibrate; });
  if (!any) throw std::invalid_argument("calibrate: " + device.name + " has no rate with use: calibrate");
  Calibration calibration;
  calibration.efficiency = best_efficiency(device, models);
  calibration.fitted_on = device.name;
  for (const DeviceRate& rate : device.rates) {
    const Model& model = model_of(rate, models);
    calibration.errors.push_back({rate, predicted_rate(model, rate, device, calibration.efficiency)});
    if (rate.use == DeviceRate::Use::calibrate && has_convolutions(model))
      calibration.convolutions_seen = true;
  }
  return calibration;
}

Calibration rate_errors(const Device& device, const std::map<std::string, Model>& models) {
  Calibration calibration{.efficiency = 1, .fitted_on = device.name, .errors = {}, .convolutions_seen = true};
  for (DeviceRate rate : device.rates) {
    rate.use = DeviceRate::Use::check;
    const double predicted = predicted_rate(model_of(rate, models), rate, device, 1);
    calibration.errors.push_back({rate, predicted});
  }
  return calibration;
}

}  // namespace stepcast
