#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "models/cost/roofline.hpp"
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

TEST_CASE("a device has the shares of the one that kernels_of names, and peaks of its own", "[models]") {
  const Device like = load_device(std::string(STEPCAST_SOURCE_DIR) + "/models", "h100-sxm");
  const Device b200 = load_device(std::string(STEPCAST_SOURCE_DIR) + "/models", "b200");
  CHECK(b200.kernels_of == "h100-sxm");
  CHECK(b200.kernels->streaming == like.kernels->streaming);
  using Precision = KernelChoice::Precision;
  CHECK(b200.precisions.at(Precision::f16).kernels.window ==
        like.precisions.at(Precision::f16).kernels.window);
  CHECK(b200.precisions.at(Precision::f16).peak.value == 2250e12);
  // What a precision names itself stays.
  const Device max = load_device(std::string(STEPCAST_SOURCE_DIR) + "/models", "max-1550");
  CHECK(max.precisions.at(Precision::f16).kernels.dense == 0.63);
  CHECK(max.precisions.at(Precision::f16).kernels.flash == like.precisions.at(Precision::f16).kernels.flash);
}

TEST_CASE("kernels_of needs a device with kernels, and stands in their place", "[models][errors]") {
  const YamlNode with = parse_yaml(kGood + "kernels_of: {value: e, source: s}\n", "d.yaml");
  const YamlNode rated = parse_yaml(kGood, "e.yaml");
  CHECK_THROWS_WITH(with_kernels_of(with, rated),
                    "d.yaml:9:13: kernels_of: the device that it names has no key kernels");
  const YamlNode shares = parse_yaml("kernels: {}\n", "e.yaml");
  const YamlNode both = parse_yaml(kGood + "kernels_of: {value: e, source: s}\nkernels: {}\n", "d.yaml");
  CHECK_THROWS_WITH(with_kernels_of(both, shares),
                    "d.yaml:9:13: kernels_of: only valid without the key kernels");
}

TEST_CASE("every device from the V100 on computes transformers faster in half precision", "[models]") {
  const std::string models = std::string(STEPCAST_SOURCE_DIR) + "/models";
  const Model model = load_model(models, "gpt2-small");
  int checked = 0;
  for (const std::string& name : names_in(models + "/devices")) {
    const Device device = load_device(models, name);
    if (!device.kernels) continue;
    CAPTURE(name);
    using Precision = KernelChoice::Precision;
    KernelChoice half;
    half.precision = device.precisions.contains(Precision::f16) ? Precision::f16 : Precision::bf16;
    half.autocast = true;
    CHECK(roofline_step(model, 8, with_kernels(device, half), 1) < roofline_step(model, 8, device, 1));
    CHECK(device.precisions.at(half.precision).peak > device.peak);
    ++checked;
  }
  CHECK(checked >= 30);
}

TEST_CASE("bf16 alone needs a peak", "[models][errors]") {
  const std::string shares =
      "kernels: {gap: {value: 1 us, source: s}, streaming: {value: 1, source: s}, batch_norm: {value: 1, "
      "source: "
      "s}, layer_norm: {value: 1, source: s}, dense: {value: 1, source: s}, pointwise: {value: 1, source: "
      "s}, "
      "window: {value: 1, source: s}, winograd: {value: 1, source: s}, recurrent_step: {value: 1 us, source: "
      "s}}\n";
  const auto with = [&](const std::string& bf16) {
    return device_of(kGood + shares + "precisions: {bf16: " + bf16 + "}\n");
  };
  CHECK(with("{peak: {value: 4 Tflop/s, source: s}}").precisions.size() == 1);
  CHECK_THROWS_WITH(with("{}"), Catch::Contains("precisions.bf16.peak: missing"));
}

TEST_CASE("precisions need the shares of fp32", "[models][errors]") {
  CHECK_THROWS_WITH(device_of(kGood + "precisions: {f16: {peak: {value: 20 Tflop/s, source: s}}}\n"),
                    "d.yaml:9:13: precisions: needs the key kernels");
}
