#include "models/partition/partition_times.hpp"

#include <catch2/catch.hpp>

#include "models/cost/roofline.hpp"
#include "models/layer_times/derived_trace.hpp"
#include "models/layer_times/trace.hpp"
#include "models/loader.hpp"
#include "models/partition/layer_partition.hpp"
#include "models/partition/spatial_partition.hpp"
#include "read_text.hpp"

namespace stepcast::partition_times_test {
namespace {

const std::string kModels = std::string(STEPCAST_SOURCE_DIR) + "/models";

Device round_device(double launch) {
  Device device;
  device.name = "round";
  device.peak = {1e12};
  device.memory_bandwidth = {1e12};
  device.memory = device.usable_memory = {1e10};
  device.launch_overhead = {launch};
  return device;
}

Calibration perfect() {
  Calibration calibration;
  calibration.fitted_on = "round";
  return calibration;
}

Trace trace_of_part(const Model& model, const Trace& trace, const Parts& parts, const Device& device) {
  const SpatialPartition partition{parts, first_mixing_layer(model)};
  const Model part = largest_spatial_part(model, partition);
  return part_trace(model, trace, {&part, std::vector<std::int64_t>(model.layers.size(), trace.batch)},
                    device);
}

Seconds mesh_step(const Parts& parts) {
  const Model model = shipped_model("mesh-1k");
  const Device device = load_device(kModels, "v100-sxm2-16gb");
  const Trace trace = derive(model, 1, device, load_calibration(device, kModels), {});
  return step_time(trace_of_part(model, trace, parts, device));
}

}  // namespace

TEST_CASE("a part that is the whole network keeps its times", "[models]") {
  const Model model = shipped_model("mesh-1k");
  const Device device = load_device(kModels, "v100-sxm2-16gb");
  const Trace trace = derive(model, 1, device, load_calibration(device, kModels), {});
  CHECK(step_time(trace_of_part(model, trace, {1, 1}, device)).value ==
        Approx(step_time(trace).value).epsilon(1e-12));
}

TEST_CASE(
    "the part of a derived trace equals the trace derived for the shape of the part, if the device stays "
    "busy",
    "[models]") {
  const Model model = shipped_model("mesh-1k");
  const Device device = round_device(5e-6);  // number of multiprocessors unknown
  const Trace trace = derive(model, 1, device, perfect(), {});
  const Model part = largest_spatial_part(model, {{4, 1}, model.layers.size()});
  CHECK(step_time(trace_of_part(model, trace, {4, 1}, device)).value ==
        Approx(roofline_step(part, 1, device, 1).value).epsilon(1e-9));
}

TEST_CASE("launch times do not depend on the shape", "[models]") {
  const Model model = shipped_model("mesh-1k");
  const Device device = round_device(1.0);  // launch times dominate
  const Trace trace = derive(model, 1, device, perfect(), {});
  const double whole = step_time(trace).value,
               part = step_time(trace_of_part(model, trace, {16, 1}, device)).value;
  CHECK(part > 0.95 * whole);
}

TEST_CASE("a partition over g devices is never g times as fast", "[models]") {
  const double whole = mesh_step({1, 1}).value;
  double before = whole;
  for (const int ways : {2, 4, 8, 16, 32}) {
    const double part = mesh_step({ways, 1}).value;
    CAPTURE(ways, whole / part);
    CHECK(part < before);
    CHECK(part > whole / ways);
    before = part;
  }
  CHECK(whole / mesh_step({4, 1}).value > 3.5);
}

TEST_CASE("a product with fewer tiles than multiprocessors leaves the others idle", "[models]") {
  Device device = round_device(0);
  CHECK(filled_share({128, 8, 32}, 1, device) == 1);  // number of multiprocessors unknown
  device.multiprocessors = 80;
  CHECK(filled_share({128, 8, 32}, 1, device) == Approx(4 * 2 / 80.0));
  CHECK(filled_share({128, 8, 32}, 10, device) == 1);
  CHECK(filled_share({128, 8, 4}, 1, device) ==
        Approx(0.5 * 2 / 80.0 * 2).epsilon(1e-12));  // at least one tile
  CHECK(filled_share({640}, 64, device) == Approx(10 / 80.0));
}

TEST_CASE("samples keep their ratio to the median", "[models]") {
  const Model model = shipped_model("mesh-1k");
  const Device device = round_device(5e-6);
  Trace trace = derive(model, 1, device, perfect(), {});
  const double time = trace.layers[0].forward.seconds.front();
  trace.layers[0].forward.seconds = {time, 1.1 * time, 0.9 * time};
  const auto part = trace_of_part(model, trace, {2, 1}, device).layers[0].forward.seconds;
  REQUIRE(part.size() == 3);
  CHECK(part[1] / part[0] == Approx(1.1));
}

TEST_CASE("more samples take longer, and updates do not", "[models]") {
  const Model model = shipped_model("resnet50");
  const Device device = load_device(kModels, "v100-sxm2-16gb");
  const Trace trace = derive(model, 32, device, load_calibration(device, kModels), {});
  const Trace half =
      part_trace(model, trace, {&model, std::vector<std::int64_t>(model.layers.size(), 16)}, device);
  CHECK(step_time(half).value < step_time(trace).value);
  CHECK(step_time(half).value > 0.5 * step_time(trace).value);
  CHECK(half.layers[0].update.seconds == trace.layers[0].update.seconds);
}

TEST_CASE("a part of all samples and positions has the interpolated times of its batch", "[models]") {
  const Model model = shipped_model("mesh-1k");
  const Device device = load_device(kModels, "v100-sxm2-16gb");
  const Calibration calibration = load_calibration(device, kModels);
  const Trace two = derive(model, 2, device, calibration, {}),
              six = derive(model, 6, device, calibration, {});
  const auto step = [&](std::int64_t batch) {
    const PartModel whole{&model, std::vector<std::int64_t>(model.layers.size(), batch)};
    return step_time(part_trace(model, {&six, &two}, whole, device)).value;
  };
  CHECK(step(2) == Approx(step_time(two).value).epsilon(1e-12));
  CHECK(step(3) == Approx(0.75 * step_time(two).value + 0.25 * step_time(six).value).epsilon(1e-12));
  CHECK(step(1) < step(2));  // outside the captured batches the rule scales the nearest trace
  CHECK(step(8) > step_time(six).value);
}

TEST_CASE("a vocabulary that devices share is padded to a multiple of 128 a device", "[models]") {
  const Model model = model_of(
      "{name: g, source: s, transformer_stack: {layers: 1, width: 64, heads: 4, sequence: 16, "
      "vocabulary: 1001}}");
  const Model part = with_padded_vocabulary(model, shard_tensor(model, 4).part);
  CHECK(part.layers.back().input.back() == 256);
  CHECK(part.layers[part.layers.size() - 2].output.back() == 256);
  CHECK(with_padded_vocabulary(model, model).layers.back().input.back() == 1001);
}

}  // namespace stepcast::partition_times_test
