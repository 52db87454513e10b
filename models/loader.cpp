#include "models/loader.hpp"

#include <algorithm>

#include "core/error.hpp"
#include "core/fields.hpp"

namespace stepcast {
namespace {

/// The folder itself and the families of its library.
std::vector<std::filesystem::path> searched_folders(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> folders{folder};
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "library", error)) {
    if (entry.is_directory(error)) folders.push_back(entry.path());
  }
  return folders;
}

}  // namespace

std::filesystem::path model_file(const std::filesystem::path& folder, const std::string& name) {
  const std::string file = name + ".yaml";
  std::error_code error;
  for (const auto& where : searched_folders(folder)) {
    if (std::filesystem::exists(where / file, error)) return where / file;
  }
  return folder / file;
}

std::vector<std::string> names_in(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& where : searched_folders(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(where, error)) {
      if (entry.path().extension() == ".yaml") names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Model load_model(const std::filesystem::path& folder, const std::string& name) {
  const YamlNode node = read_yaml(model_file(folder, name));
  return read_model(YamlValue(node, ""));
}

Device load_device(const std::filesystem::path& folder, const std::string& name) {
  YamlNode node = read_yaml(folder / "devices" / (name + ".yaml"));
  if (const YamlNode* like = kernels_of(node))
    node = with_kernels_of(node, read_yaml(folder / "devices" / (like->text + ".yaml")));
  return read_device(YamlValue(node, ""));
}

std::string device_reported_as(const std::filesystem::path& folder, const std::string& gpu) {
  for (const std::string& name : names_in(folder / "devices")) {
    const YamlNode root = read_yaml(folder / "devices" / (name + ".yaml"));
    const YamlNode* reported = root.find("reported_as");
    if (reported == nullptr) continue;
    // A whole name: a H200 is neither the slower H200 NVL nor the GH200, and an L4 no L40S.
    for (const std::string& one : texts().read(YamlValue(*reported, "reported_as"))) {
      if (gpu == one || gpu.ends_with(" " + one)) return name;
    }
  }
  return "";
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
