#include "models/cost/device.hpp"

#include "models/cost/device_keys.hpp"

namespace stepcast {
namespace {

/// The value of `{value: ..., source: ...}`; a number without a source is refused.
YamlValue sourced(const YamlMap& yaml, std::string_view key) {
  const YamlMap pair = read_map(yaml.at(key, "{value: ..., source: ...}"), sourced_value_keys());
  pair.at("source", "where the value comes from").text();
  return pair.at("value");
}

DeviceRate read_rate(const YamlValue& value) {
  const YamlMap yaml = read_map(value, device_rate_keys());
  const auto use = yaml.maybe("use");
  const bool check = use && use->one_of({"calibrate", "check"}) == 1;
  return {.model = yaml.at("model", "the name of a model").text(),
          .batch = yaml.at("batch", "an integer >= 1").integer(1, 1'000'000'000),
          .samples_per_second = yaml.at("samples_per_second", "a number > 0").number(1e-9),
          .use = check ? DeviceRate::Use::check : DeviceRate::Use::calibrate,
          .source = yaml.at("source", "where the rate comes from").text()};
}

KernelShares read_kernels(const YamlValue& value) {
  const YamlMap yaml = read_map(value, kernel_share_keys());
  const auto share = [&](std::string_view key) { return sourced(yaml, key).number(0.01, 1); };
  KernelShares kernels{.gap = sourced(yaml, "gap").seconds(),
                       .streaming = share("streaming"),
                       .batch_norm = share("batch_norm"),
                       .layer_norm = share("layer_norm"),
                       .dense = share("dense"),
                       .pointwise = share("pointwise"),
                       .window = share("window"),
                       .winograd = sourced(yaml, "winograd").number(1, 10),
                       .recurrent_step = sourced(yaml, "recurrent_step").seconds()};
  if (yaml.has("weights")) kernels.weights = share("weights");
  if (yaml.has("batch_norm_channels"))
    kernels.batch_norm_channels = sourced(yaml, "batch_norm_channels").number(0, 10'000);
  if (yaml.has("cache")) kernels.cache = sourced(yaml, "cache").bytes(0);
  if (yaml.has("channel_multiple"))
    kernels.channel_multiple = static_cast<double>(sourced(yaml, "channel_multiple").integer(1, 1024));
  return kernels;
}

}  // namespace

Device read_device(const YamlValue& value) {
  const YamlMap yaml = read_map(value, device_keys());
  Device device;
  device.name = yaml.at("name", "the device's name").text();
  device.peak = sourced(yaml, "peak").flops_per_second();
  device.memory_bandwidth = sourced(yaml, "memory_bandwidth").bytes_per_second();
  device.memory = sourced(yaml, "memory").bytes(1);
  device.usable_memory = sourced(yaml, "usable_memory").bytes(1);
  device.launch_overhead = sourced(yaml, "launch_overhead").seconds();
  if (yaml.has("multiprocessors")) {
    device.multiprocessors = static_cast<int>(sourced(yaml, "multiprocessors").integer(1, 1'000'000));
  }
  if (device.usable_memory > device.memory) {
    yaml.at("usable_memory").refuse("more than the device's memory");
  }
  if (const auto rates = yaml.maybe("rates")) {
    for (const YamlValue& rate : rates->list()) device.rates.push_back(read_rate(rate));
  }
  if (const auto kernels = yaml.maybe("kernels")) device.kernels = read_kernels(*kernels);
  if (yaml.has("efficiency_of")) device.efficiency_of = sourced(yaml, "efficiency_of").text();
  return device;
}

}  // namespace stepcast
