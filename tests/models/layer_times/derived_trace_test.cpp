#include "models/layer_times/derived_trace.hpp"

#include <fmt/format.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <sstream>

#include "core/error.hpp"
#include "models/cost/roofline.hpp"
#include "models/layer_times/trace.hpp"
#include "models/layer_times/trace_text.hpp"
#include "models/loader.hpp"
#include "read_text.hpp"

using namespace stepcast;

namespace {

const std::string kModels = std::string(STEPCAST_SOURCE_DIR) + "/models";

Device round_device() {
  Device device;
  device.name = "round";
  device.peak = {1e12};
  device.memory_bandwidth = {1e11};
  device.memory = device.usable_memory = {1e10};
  device.launch_overhead = {1e-5};
  return device;
}

Calibration perfect() {
  Calibration calibration;
  calibration.fitted_on = "round";
  return calibration;
}

Model two_layers() {
  return model_of(
      "{name: m, source: s, input: [1000], layers: [{name: a, kind: dense, units: 1000, bias: false},"
      "{name: l, kind: mean_squared_error}]}");
}

}  // namespace

TEST_CASE("the time of a pass is launch + max(computing, streaming)", "[models]") {
  const Model model = two_layers();
  const PassCost cost = layer_costs(model)[0].forward;
  const auto time = [&](std::int64_t batch, double e) {
    return roofline_time(model.layers[0], cost, batch, round_device(), e).value;
  };
  CHECK(time(1, 1) ==
        Approx(1e-5 + 4 * (2000 + 1e6) / (0.7 * 1e11)).epsilon(1e-12));  // streaming the weights
  CHECK(time(10000, 1) == Approx(1e-5 + 2e10 / 1e12).epsilon(1e-12));
  CHECK(time(10000, 0.5) == Approx(1e-5 + 2 * 2e10 / 1e12).epsilon(1e-12));
}

TEST_CASE("2-D convolutions of stride 1 and kernel 3 run 2.25 times faster than their work", "[models]") {
  struct Case {
    std::string input, kernel;
    double gain;
  };
  const auto given = GENERATE(values<Case>({{"[64, 32, 32]", "kernel: 3, pad: 1", 2.25},
                                            {"[64, 32, 32]", "kernel: 5", 2.25},
                                            {"[64, 32, 32]", "kernel: 1", 1},
                                            {"[64, 32, 32]", "kernel: 3, stride: 2", 1},
                                            {"[64, 9, 9, 9]", "kernel: 3", 1}}));
  const Model model = model_of("{name: m, source: s, input: " + given.input +
                               ", layers: [{name: a, kind: convolution, filters: 512, " + given.kernel +
                               "}, {name: l, kind: mean_squared_error}]}");
  Device device = round_device();
  device.launch_overhead = {0};
  device.memory_bandwidth = {1e15};
  const PassCost cost = layer_costs(model)[0].forward;
  CHECK(roofline_time(model.layers[0], cost, 4, device, 1).value ==
        Approx(4 * cost.flops.value / 1e12 / given.gain).epsilon(1e-12));
}

TEST_CASE("calibration recovers the efficiency from which the rates were computed", "[models]") {
  Device device = round_device();
  const std::map<std::string, Model> models{{"m", two_layers()}};
  for (const std::int64_t batch : {64, 4096}) {
    const double rate = batch / roofline_step(models.at("m"), batch, device, 0.37).value;
    device.rates.push_back({"m", batch, rate, DeviceRate::Use::calibrate, "made up"});
  }
  device.rates.push_back({"m", 64, 1.0, DeviceRate::Use::check, "far off"});
  const Calibration calibration = calibrate(device, models);
  CHECK(calibration.efficiency == Approx(0.37).epsilon(1e-5));
  CHECK(calibration.errors[0].error() == Approx(0).margin(1e-5));
  CHECK(calibration.errors[2].predicted > 1);
}

TEST_CASE("a device without rates and without efficiency_of cannot be calibrated", "[models][errors]") {
  CHECK_THROWS_WITH(load_calibration(round_device(), kModels),
                    "device round: expected rates or efficiency_of, which a derived trace needs");
  CHECK_THROWS_WITH(calibrate(round_device(), {}), "calibrate: round has no rate with use: calibrate");
}

TEST_CASE("derived traces have the times of the rule and the layers and passes of the model", "[models]") {
  const Model model = shipped_model("resnet50");
  const Trace trace = derive(model, 32, round_device(), perfect(), {});
  CHECK_NOTHROW(check_fits(trace, model));
  CHECK(trace.kind == Trace::Kind::derived);
  CHECK(step_time(trace).value == Approx(roofline_step(model, 32, round_device(), 1).value).epsilon(1e-12));
  CHECK(trace.layers[0].backward_data.seconds.empty());  // nothing below the first layer
  CHECK(trace.layers[0].backward_weights.seconds.size() == 1);
  const Trace again = trace_of(to_yaml(trace));
  CHECK(step_time(again).value == Approx(step_time(trace).value).epsilon(1e-6));
}

TEST_CASE(
    "a derived trace states the arrays of its update, so that one of them has the same time for every "
    "optimizer",
    "[models]") {
  const Model model = two_layers();
  CHECK(derive(model, 1, round_device(), perfect(), {}).update_arrays == 5);
  Device device = round_device();
  device.kernels = KernelShares{};
  device.kernels->gap = {0};
  const auto array = [&](KernelChoice::UpdateRule optimizer, KernelChoice::Update update, double arrays) {
    device.kernels->choice.optimizer = optimizer;
    device.kernels->choice.update = update;
    const Trace trace = derive(model, 1, device, perfect(), {});
    CHECK(trace.update_arrays == arrays);
    CHECK(trace_of(to_yaml(trace)).update_arrays == arrays);
    return median(trace.layers[0].update.seconds).value / trace.update_arrays;
  };
  using Choice = KernelChoice;
  const double expected = 1e6 * 4 / 1e11;  // of a million parameters at 100 GB/s
  CHECK(array(Choice::UpdateRule::momentum, Choice::Update::foreach, 8) == Approx(expected));
  CHECK(array(Choice::UpdateRule::momentum, Choice::Update::fused, 5) == Approx(expected));
  CHECK(array(Choice::UpdateRule::adam, Choice::Update::foreach, 18) == Approx(expected));
  CHECK(array(Choice::UpdateRule::adam, Choice::Update::fused, 7) == Approx(expected));
  CHECK(array(Choice::UpdateRule::sgd, Choice::Update::foreach, 3) == Approx(expected));
}

TEST_CASE("a derived trace has the relative noise of a captured trace", "[models]") {
  const Model model = two_layers();
  Trace captured;
  captured.name = "captured";
  captured.layers = {{"a", {{1, 1.1, 0.9}, {}}, {}, {}, {}}, {"l", {{4, 4, 4}, {}}, {}, {}, {}}};
  const Trace trace = derive(model, 100, round_device(), perfect(), {&captured, 8});
  const double time =
      roofline_time(model.layers[0], layer_costs(model)[0].forward, 100, round_device(), 1).value;
  REQUIRE(trace.layers[0].forward.seconds.size() == 3);
  CHECK(trace.layers[0].forward.seconds[1] == Approx(1.1 * time));
  // The captured layer has no update pass, so the ratios of whole steps are used.
  CHECK(trace.layers[0].update.seconds[1] / trace.layers[0].update.seconds[0] == Approx(5.1 / 5.0));
  CHECK(derive(model, 100, round_device(), perfect(), {&captured, 2}).layers[0].forward.seconds.size() == 2);
  captured.layers.pop_back();
  CHECK_THROWS_AS(derive(model, 100, round_device(), perfect(), {&captured, 8}), InputError);
}

TEST_CASE("the rule predicts the published rates of shipped devices", "[models]") {
  struct Case {
    std::string device;
    double worst;  // the present relative error, rounded up, so that the test fails if it grows
  };
  const auto given = GENERATE(values<Case>({{"k20x", 0.04},
                                            {"k40", 1e-4},
                                            {"k80", 0.10},
                                            {"p100-sxm2", 0.15},
                                            {"p100-pcie", 0.25},
                                            {"v100-sxm2-16gb", 0.10}}));  // not fitted on the rate
  CAPTURE(given.device);
  const Calibration calibration = load_calibration(load_device(kModels, given.device), kModels);
  for (const RateError& error : calibration.errors) {
    CAPTURE(error.rate.model, error.rate.batch, error.predicted);
    CHECK(std::abs(error.error()) < given.worst);
  }
}

TEST_CASE("devices with shares of their own fit nothing, and others keep the older rule", "[models]") {
  for (const char* name : {"v100-sxm2-16gb", "v100-sxm2-32gb", "a100-40gb", "h100-sxm", "h200", "gh200"}) {
    const Device device = load_device(kModels, name);
    const Calibration calibration = load_calibration(device, kModels);
    CHECK(calibration.fitted_on == device.name);
    CHECK(calibration.efficiency == 1);
    for (const RateError& error : calibration.errors) CHECK(error.rate.use == DeviceRate::Use::check);
  }
  // A device without shares takes the efficiency that the older rule has on a V100.
  Device older = load_device(kModels, "v100-sxm2-32gb");
  older.kernels.reset();
  older.efficiency_of = "v100-sxm2-16gb";
  CHECK(load_calibration(older, kModels).efficiency == Approx(0.864).margin(5e-4));
}

TEST_CASE("times without tensor cores are flagged where PyTorch would use them", "[models]") {
  const auto flags = [](const Device& device) {
    return derive(shipped_model("resnet50"), 32, device, load_calibration(device, kModels), {}).flags.size();
  };
  const Device a100 = load_device(kModels, "a100-40gb");
  CHECK(flags(a100) == 1);
  KernelChoice tf32;
  tf32.precision = KernelChoice::Precision::tf32;
  CHECK(flags(with_kernels(a100, tf32)) == 0);
  CHECK(flags(load_device(kModels, "v100-sxm2-16gb")) == 0);
}

TEST_CASE("convolutions on a device that was calibrated on dense networks are flagged", "[models]") {
  const Device device = load_device(kModels, "k40");
  const Calibration calibration = load_calibration(device, kModels);
  CHECK(derive(shipped_model("chen-huo-dnn"), 1024, device, calibration, {}).flags.empty());
  CHECK(derive(shipped_model("resnet50"), 32, device, calibration, {}).flags ==
        std::vector<std::string>{"convolutions extrapolated: the efficiency was fitted on dense networks"});
}

TEST_CASE("the host's times of a derived trace are operators times the time of one", "[models]") {
  Device device = round_device();
  CHECK(derive(two_layers(), 1, device, perfect(), {}).layers[0].host.forward == 0);
  device.host_operation = {1e-5};
  const Trace trace = derive(two_layers(), 1, device, perfect(), {});
  CHECK(trace.layers[0].host.forward == Approx(1e-5));
  CHECK(trace.layers[0].host.backward == Approx(2e-5));  // the product, and what is done with its gradient
  CHECK(trace.layers[0].host.update == Approx(1e-5));
  device.launch_overhead = {};  // a processor
  CHECK(derive(two_layers(), 1, device, perfect(), {}).layers[0].host.forward == 0);
}

TEST_CASE("Megatron-LM's fused softmax needs a multiple of four matrices of scores", "[models]") {
  KernelChoice choice;
  choice.precision = KernelChoice::Precision::f16;
  choice.attention = KernelChoice::Attention::fused_softmax;
  const Device device =
      with_kernels(load_device(std::string(STEPCAST_SOURCE_DIR) + "/models", "a100-40gb"), choice);
  const Model model = model_of(
      "{name: g, source: s, transformer_stack: {layers: 1, width: 64, heads: 2, sequence: 16, "
      "vocabulary: 100}}");
  CHECK(with_available_softmax(device, model, 2).choice() == choice);
  const KernelChoice without = with_available_softmax(device, model, 1).choice();
  CHECK(without.attention == KernelChoice::Attention::eager);
  CHECK(without.fp32_scores);
}

namespace {

const std::string kSources = STEPCAST_SOURCE_DIR;

/// A row of the documented table, from a row of models/measured/rates.yaml.
std::string rate_row(const YamlMap& row) {
  KernelChoice choice;
  choice.precision = precision_words().read(row.at("precision", ""));
  choice.layout = layout_words().read(row.at("layout", ""));
  const std::string model = row.at("model", "").text(), device = row.at("device", "").text();
  const std::int64_t batch = row.at("batch", "").integer(1, 10'000);
  const Seconds step = roofline_step(shipped_model(model), batch,
                                     with_kernels(load_device(kSources + "/models", device), choice), 1);
  const double published = row.at("rate", "").number(0), rule = batch / step.value;
  return fmt::format("| `{}` | {} | `{}` | {} | `{}` | {:.1f} | {:.1f} | {:+.0f} % |", model, batch, device,
                     row.at("precision", "").text(), row.at("layout", "").text(), published, rule,
                     100 * (rule / published - 1));
}

}  // namespace

TEST_CASE("docs/notes/2026-11-derived-rule.md compares convolutions in groups with published rates",
          "[models]") {
  std::stringstream page;
  page << std::ifstream(kSources + "/docs/notes/2026-11-derived-rule.md").rdbuf();
  const YamlNode node = read_yaml(kSources + "/models/measured/rates.yaml");
  for (const YamlValue& value : YamlValue(node, "").map({"rows"}).at("rows", "").list()) {
    const std::string row =
        rate_row(value.map({"model", "batch", "precision", "layout", "device", "rate", "source"}));
    CAPTURE(row);
    CHECK(page.str().find(row) != std::string::npos);
  }
}
