#include "models/layer_times/derived_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "core/error.hpp"
#include "models/cost/cost.hpp"
#include "models/cost/roofline.hpp"
#include "models/layer_times/trace.hpp"
#include "models/work/host_operators.hpp"

namespace stepcast {
namespace {

const Model& model_of(const DeviceRate& rate, const std::map<std::string, Model>& models) {
  const auto found = models.find(rate.model);
  if (found == models.end()) throw std::invalid_argument("calibrate: missing model " + rate.model);
  return found->second;
}

double predicted_rate(const Model& model, const DeviceRate& rate, const Device& device, double efficiency) {
  return rate.batch / roofline_step(model, rate.batch, device, efficiency).value;
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
    if (rate.use == DeviceRate::Use::calibrate && has_layers(model, LayerKind::convolution))
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

namespace {

using Ratios = std::vector<double>;  // sample / median, for each timed step

/// Samples divided by the median of the kept samples, so that the median of the derived times is the time of
/// the rule.
Ratios relative(std::vector<double> samples, std::size_t most) {
  samples.resize(std::min(most, samples.size()));
  const double middle = median(samples).value;
  if (!(middle > 0)) return {};
  for (double& sample : samples) sample /= middle;
  return samples;
}

/// Relative times of whole timed steps, for passes without samples.
Ratios step_ratios(const Trace& trace, std::size_t most) {
  std::vector<double> sums;
  for (const LayerTrace& layer : trace.layers) {
    for (const PassSamples* pass : passes(layer)) {
      if (sums.size() < pass->seconds.size()) sums.resize(pass->seconds.size());
      for (std::size_t i = 0; i < pass->seconds.size(); ++i) sums[i] += pass->seconds[i];
    }
  }
  return relative(sums, most);
}

PassSamples scaled(Seconds time, const Ratios& own, const Ratios& step) {
  PassSamples samples;
  for (const double ratio : own.empty() ? step : own) samples.seconds.push_back(time.value * ratio);
  if (samples.seconds.empty()) samples.seconds = {time.value};
  return samples;
}

std::string rate_list(const Calibration& calibration);

std::string explain(const Device& device, const Calibration& calibration) {
  if (device.kernels) {
    const std::string choice = to_string(device.kernels->choice);
    const std::string text = fmt::format(
        "rule of docs/explanation/derived-traces.md for kernels of 2019 and later, with the shares of "
        "models/devices/{}.yaml{}{}.",
        device.name, choice.empty() ? "" : ", ", choice);
    // Published rates are of the usual kernels.
    return choice.empty() ? text + " Error against published rates, none fitted:" + rate_list(calibration)
                          : text;
  }
  std::string text = fmt::format(
      "roofline rule of docs/explanation/derived-traces.md with efficiency {:.3f} {} {}; launch overhead "
      "{:.3g} us. "
      "Error against published rates of {}:",
      calibration.efficiency, calibration.fitted_on == device.name ? "fitted on" : "assumed equal to that of",
      calibration.fitted_on, device.launch_overhead.value * 1e6, calibration.fitted_on);
  return text + rate_list(calibration);
}

std::string rate_list(const Calibration& calibration) {
  if (calibration.errors.empty()) return " none.";
  std::string text;
  for (const RateError& error : calibration.errors) {
    text += fmt::format(" {} batch {} {} ({});", error.rate.model, error.rate.batch, error_text(error),
                        error.rate.use == DeviceRate::Use::check ? "not fitted" : "fitted");
  }
  text.back() = '.';
  return text;
}

std::vector<std::string> warnings(const Model& model, const Device& device, const Calibration& calibration) {
  std::vector<std::string> flags;
  if (calibration.fitted_on != device.name) {
    flags.push_back(fmt::format("no published rate of {}: efficiency assumed equal to that of {}",
                                device.name, calibration.fitted_on));
  }
  if (has_layers(model, LayerKind::convolution) && !calibration.convolutions_seen) {
    flags.push_back("convolutions extrapolated: the efficiency was fitted on dense networks");
  }
  const bool fp32 = device.choice().precision == KernelChoice::Precision::f32;
  if (fp32 && device.precisions.contains(KernelChoice::Precision::tf32)) {
    flags.push_back(
        "fp32 without tensor cores, although PyTorch's convolutions use TF32 here by default: name a "
        "precision");
  }
  return flags;
}

/// Sets the host's times. A processor has no host.
void set_host_times(const Model& model, const std::vector<LayerCost>& costs, const Device& device,
                    Trace& trace) {
  const double operation = device.host_operation.value;
  if (operation == 0 || device.is_processor()) return;
  const std::vector<HostOperators> operators = host_operators(model, costs, device.choice());
  for (std::size_t i = 0; i < operators.size(); ++i) {
    const auto& [forward, backward, update] = operators[i];
    trace.layers[i].host = {forward * operation, backward * operation, update * operation};
  }
}

}  // namespace

Device with_available_softmax(Device device, const Model& part, std::int64_t batch) {
  if (device.choice().attention != KernelChoice::Attention::fused_softmax) return device;
  const bool available = std::ranges::all_of(part.layers, [&](const Layer& layer) {
    return layer.kind != LayerKind::attention ||
           (layer.heads * batch % 4 == 0 && layer.input.front() <= 4096);
  });
  if (available) return device;
  device.kernels->choice.attention = KernelChoice::Attention::eager;
  device.kernels->choice.fp32_scores = device.choice().half();
  return device;
}

Trace derive(const Model& model, std::int64_t batch, const Device& device, const Calibration& calibration,
             const TraceNoise& noise) {
  for (const Layer& layer : model.layers) {
    if (layer.kind == LayerKind::measured)
      throw InputError(
          fmt::format("model {}: layer {} is of kind measured: no rule gives its time, only a "
                      "trace that was captured",
                      model.name, layer.name));
  }
  const std::size_t most = std::max(1, noise.samples);
  if (noise.captured != nullptr) check_fits(*noise.captured, model);
  const Ratios step = noise.captured != nullptr ? step_ratios(*noise.captured, most) : Ratios{};
  const KernelChoice choice = device.choice();
  const std::vector<LayerCost> costs = layer_costs(model, choice);
  Trace trace;
  trace.name = fmt::format("{}-b{}-{}", model.name, batch, device.name);
  trace.kind = Trace::Kind::derived;
  trace.model = model.name;
  trace.batch = batch;
  trace.precision = precision_words().of(choice.precision);
  trace.device = device.name;
  trace.command = fmt::format("stepcast derive --model {} --batch {} --device {}{}", model.name, batch,
                              device.name, to_flags(choice));
  if (device.kernels) trace.update_arrays = update_arrays(choice);
  trace.source = explain(device, calibration);
  trace.flags = warnings(model, device, calibration);
  for (std::size_t i = 0; i < costs.size(); ++i) {
    const LayerTrace* captured = noise.captured != nullptr ? &noise.captured->layers[i] : nullptr;
    const auto samples = [&](const PassCost& cost, PassSamples LayerTrace::*pass) {
      if (cost.kernels == 0) return PassSamples{};
      const Seconds time = roofline_time(model.layers[i], cost, batch, device, calibration.efficiency);
      return scaled(time, captured != nullptr ? relative((captured->*pass).seconds, most) : Ratios{}, step);
    };
    trace.layers.push_back({model.layers[i].name, samples(costs[i].forward, &LayerTrace::forward),
                            samples(costs[i].backward_data, &LayerTrace::backward_data),
                            samples(costs[i].backward_weights, &LayerTrace::backward_weights),
                            samples(costs[i].update, &LayerTrace::update)});
  }
  set_host_times(model, costs, device, trace);
  if (noise.captured != nullptr)
    trace.source += fmt::format(" Relative noise of trace {}.", noise.captured->name);
  return trace;
}

}  // namespace stepcast
