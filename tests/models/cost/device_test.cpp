#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "models/loader.hpp"

using namespace stepcast;

namespace {

const std::string kGood =
    "name: d\n"
    "peak: {value: 10.6 Tflop/s, source: s}\n"
    "memory_bandwidth: {value: 720 GB/s, source: s}\n"
    "memory: {value: 16 GiB, source: s}\n"
    "usable_memory: {value: 15 GiB, source: s}\n"
    "launch_overhead: {value: 5 us, source: s}\n"
    "rates:\n"
    "  - {model: resnet50, batch: 64, samples_per_second: 219, source: s}\n";

Device device_of(const std::string& text) {
  const YamlNode node = parse_yaml(text, "d.yaml");
  return read_device(YamlValue(node, ""));
}

}  // namespace

TEST_CASE("read_device gives SI units", "[models]") {
  const Device device = device_of(kGood);
  CHECK(device.peak.value == 10.6e12);
  CHECK(device.memory_bandwidth.value == 720e9);
  CHECK(device.memory.value == 16 * 0x1p30);
  CHECK(device.launch_overhead.value == Approx(5e-6).epsilon(1e-12));
  CHECK(device.rates.at(0).samples_per_second == 219);
  CHECK(device.rates.at(0).use == DeviceRate::Use::calibrate);
}

TEST_CASE("read_device refuses numbers without a source", "[models][errors]") {
  struct Case {
    std::string right, wrong, message;
  };
  const auto edit = GENERATE(values<Case>({
      {"{value: 10.6 Tflop/s, source: s}", "10.6 Tflop/s",
       "d.yaml:2:7: peak: expected a mapping with keys value, source, got \"10.6 Tflop/s\""},
      {"{value: 5 us, source: s}", "{value: 5 us}",
       "d.yaml:6:18: launch_overhead.source: missing (expected where the value comes from)"},
      {"15 GiB", "17 GiB", "d.yaml:5:16: usable_memory: more than the device's memory"},
      {"219", "0", "d.yaml:8:54: rates[0].samples_per_second: expected a number >= 1e-09, got \"0\""},
  }));
  std::string text = kGood;
  text.replace(text.find(edit.right), edit.right.size(), edit.wrong);
  CAPTURE(text);
  CHECK_THROWS_WITH(device_of(text), edit.message);
}

TEST_CASE("the usable memory of shipped devices is below the nominal one", "[models]") {
  for (const char* name : {"k20x", "k40", "k80", "p100-sxm2", "p100-pcie", "v100-sxm2-16gb", "a100-40gb",
                           "h100-sxm", "h200", "gh200", "cpu-core"}) {
    const Device device = load_device(std::string(STEPCAST_SOURCE_DIR) + "/models", name);
    CHECK(device.name == name);
    CHECK(device.usable_memory < device.memory);
  }
}

TEST_CASE("precisions need the shares of fp32", "[models][errors]") {
  CHECK_THROWS_WITH(device_of(kGood + "precisions: {f16: {peak: {value: 20 Tflop/s, source: s}}}\n"),
                    "d.yaml:9:13: precisions: needs the key kernels");
}
