// Platforms, networks, devices, traces and compression times, and the tables that `show` prints of them.
#include "core/yaml.hpp"
#include "models/cost/memory.hpp"
#include "models/layer_times/compression_times.hpp"
#include "models/layer_times/trace_text.hpp"
#include "models/tables/tables.hpp"
#include "platforms/platform_table.hpp"
#include "tests/fuzz/input.hpp"

using namespace stepcast;

namespace {

void show_platform(const YamlValue& value) {
  Device device;
  device.compute_capability = 8.0;
  const Platform platform = read_platform(value, device);
  platform_table(platform);
  route_table(platform, 0, platform.devices() - 1);
  route_table(platform, platform.host_endpoint(0), platform.devices() / 2);
}

void show_model(const YamlValue& value) {
  const Model model = read_model(value);
  model_table(model);
  training_memory(model, {.batch = 32});
}

/// A trace that is written can be read again.
void show_trace(const YamlValue& value) {
  const Trace trace = read_trace(value);
  trace_table(trace, nullptr);
  std::string text;
  try {
    text = to_yaml(trace);
    const YamlNode again = parse_yaml(text, "again.yaml");
    read_trace(YamlValue(again, ""));
  } catch (const InputError& error) {
    throw std::logic_error(error.what() + (": " + text));
  }
}

void show_device(const YamlValue& value) {
  device_table(read_device(value), nullptr);
}

void show_compression(const YamlValue& value) {
  const CompressionTrace trace = read_compression(value);
  compression_table(trace);
  for (const auto& codec : trace.codecs) cost_of(trace, codec.kind);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  refuses_or_reads([&] {
    const YamlNode root = parse_yaml({reinterpret_cast<const char*>(data), size}, "input.yaml");
    for (const auto show : {show_platform, show_model, show_trace, show_device, show_compression})
      refuses_or_reads([&] { show(YamlValue(root, "")); });
  });
  return 0;
}
