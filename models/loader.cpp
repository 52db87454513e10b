#include "models/loader.hpp"

#include "core/error.hpp"

namespace stepcast {

Model load_model(const std::filesystem::path& folder, const std::string& name) {
  const YamlNode node = read_yaml(folder / (name + ".yaml"));
  return read_model(YamlValue(node, ""));
}

Device load_device(const std::filesystem::path& folder, const std::string& name) {
  const YamlNode node = read_yaml(folder / "devices" / (name + ".yaml"));
  return read_device(YamlValue(node, ""));
}

namespace {

std::map<std::string, Model> models_of(const std::vector<DeviceRate>& rates,
                                       const std::filesystem::path& folder) {
  std::map<std::string, Model> models;
  for (const DeviceRate& rate : rates) {
    if (!models.contains(rate.model)) models.emplace(rate.model, load_model(folder, rate.model));
  }
  return models;
}

}  // namespace

Calibration load_calibration(const Device& device, const std::filesystem::path& folder) {
  if (device.kernels) return rate_errors(device, models_of(device.rates, folder));
  if (device.rates.empty() && device.efficiency_of.empty()) {
    throw InputError("device " + device.name +
                     ": expected rates or efficiency_of, which a derived trace needs");
  }
  Device rated = device.rates.empty() ? load_device(folder, device.efficiency_of) : device;
  if (rated.rates.empty())
    throw InputError("device " + rated.name + ": expected rates, because efficiency_of of device " +
                     device.name + " names this device");
  rated.kernels.reset();  // an efficiency is of the older rule
  return calibrate(rated, models_of(rated.rates, folder));
}

}  // namespace stepcast
