#include "scenarios/reader/library.hpp"

#include <fmt/format.h>

#include <cstdlib>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"
#include "models/loader.hpp"
#include "scenarios/reader/scenario_documents.hpp"

namespace stepcast {
std::filesystem::path data_folder() {
  const char* set = std::getenv("STEPCAST_DATA");
  if (set != nullptr && *set != '\0') return set;
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  const auto installed = program.parent_path().parent_path() / "share" / "stepcast";
  return std::filesystem::is_directory(installed / "models", error) ? installed : STEPCAST_DATA_DIR;
}

std::filesystem::path data_file(const YamlValue& name, const std::string& folder) {
  const std::string text = name.text();
  std::error_code error;
  if (text.ends_with(".yaml")) {
    const Place& place = name.node().place;
    const bool typed = place.line == 0;  // on the command line
    const auto file =
        typed ? std::filesystem::path(text) : std::filesystem::path(*place.file).parent_path() / text;
    if (std::filesystem::exists(file, error)) return file;
    name.refuse(fmt::format("there is no file {}", file.string()));
  }
  const auto where = data_folder() / folder;
  const auto file = model_file(where, text);
  if (text.find('/') == std::string::npos && std::filesystem::exists(file, error)) return file;
  name.refuse(fmt::format("expected a name in {}/ or a path ending in .yaml, got \"{}\"{}", folder,
                          printable(text), word_advice(text, names_in(where))));
}

std::string scenario_file(const std::string& name) {
  constexpr std::string_view kFolder = "scenarios/", kEnding = ".yaml";
  const auto hash = std::min(name.find('#'), name.size());
  const std::string base = name.substr(0, hash), in_file = name.substr(hash);
  const bool path = base.starts_with(kFolder) && base.ends_with(kEnding);  // of the sources
  const std::filesystem::path relative = path ? base.substr(kFolder.size()) : base + ".yaml",
                              shipped = data_folder() / "scenarios" / relative;
  const bool inside =
      relative.is_relative() && *relative.begin() != ".." && relative.lexically_normal() == relative;
  std::error_code error;
  const bool is_name = inside && (path || !base.ends_with(kEnding)) && !std::filesystem::exists(base, error);
  return is_name && std::filesystem::exists(shipped, error) ? shipped.string() + in_file : name;
}

void check_scenario_file(const std::filesystem::path& file) {
  std::error_code error;
  if (is_standard_input(file) || file_of(file).extension() == ".yaml" || std::filesystem::exists(file, error))
    return;
  throw InputError(fmt::format("{}: expected a path that ends in .yaml or a name in scenarios/{}",
                               printable(file.string()),
                               word_advice(file.string(), names_in(data_folder() / "scenarios"))));
}

YamlNode command_line_name(const std::string& name) {
  YamlNode node;
  node.kind = YamlNode::Kind::scalar;
  node.text = name;
  node.place.file = std::make_shared<const std::string>("command line");
  return node;
}

namespace {

/// The value under `key`, created by `make` on first use.
template <class Value, class Make>
const Value& once(std::map<std::string, std::unique_ptr<Value>>& known, const std::string& key,
                  const Make& make) {
  auto& value = known[key];
  if (!value) value = std::make_unique<Value>(make());
  return *value;
}

}  // namespace

const YamlNode& Library::tree(const YamlValue& name, const std::string& folder) {
  const auto file = data_file(name, folder);
  files_.insert({folder == "models/traces"        ? "trace"
                 : folder == "models/compression" ? "compression"
                 : folder == "models/devices"     ? "device"
                 : folder == "models/measured"    ? "discrepancy"
                 : folder == "models"             ? "model"
                 : folder == "strategies/stacks"  ? "software stack"
                                                  : "platform",
                 file.string()});
  return once(trees_, file.string(), [&] { return read_yaml(file); });
}

const Model& Library::model(const YamlValue& name) {
  const YamlNode& root = tree(name, "models");
  return once(models_, *root.place.file, [&] { return read_model(YamlValue(root, "")); });
}

const Trace& Library::trace(const YamlValue& name) {
  const YamlNode& root = tree(name, "models/traces");
  return once(traces_, *root.place.file, [&] { return read_trace(YamlValue(root, "")); });
}

void Library::note_file(const std::string& role, const std::string& folder, const std::string& name) {
  files_.insert({role, model_file(data_folder() / folder, name).string()});
}

const Device& Library::device(const YamlValue& name) {
  const YamlNode& root = tree(name, "models/devices");
  return once(devices_, *root.place.file, [&] {
    const YamlNode* like = kernels_of(root);
    if (like == nullptr) return read_device(YamlValue(root, ""));
    const YamlNode whole =
        with_kernels_of(root, tree(YamlValue(*like, "kernels_of.value"), "models/devices"));
    return read_device(YamlValue(whole, ""));
  });
}

const Device& Library::device(const std::string& name) {
  const YamlNode node = command_line_name(name);
  return device(YamlValue(node, "device"));
}

Platform Library::platform(const YamlValue& tree) {
  return read_platform(tree, device(tree.any_map().at("device", "a file of models/devices")));
}

const CompressionTrace& Library::compression(const std::optional<YamlValue>& name) {
  const YamlNode own = command_line_name("cpu");
  const YamlNode& root = tree(name.value_or(YamlValue(own, "compression_times")), "models/compression");
  return once(compressions_, *root.place.file, [&] { return read_compression(YamlValue(root, "")); });
}

const Calibration& Library::calibration(const Device& device) {
  const Device& rated =
      device.rates.empty() && !device.efficiency_of.empty() ? this->device(device.efficiency_of) : device;
  for (const DeviceRate& rate : rated.rates) note_file("model", "models", rate.model);
  return once(calibrations_, device.name + " " + to_string(device.choice()),
              [&] { return load_calibration(device, data_folder() / "models"); });
}

}  // namespace stepcast
