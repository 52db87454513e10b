#include "scenarios/experiment/times_and_memory.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "core/error.hpp"
#include "scenarios/experiment/placement.hpp"
#include "strategies/plan/plan.hpp"
#include "tests/platforms/built_platforms.hpp"

using namespace stepcast;

namespace {

Model two_layers() {
  const YamlNode node = parse_yaml(R"(
name: two
source: test
input: [4]
layers:
  - {name: gen_fc, kind: dense, units: 4}
  - {name: disc_fc, kind: dense, units: 4}
  - {name: loss, kind: mean_squared_error}
)",
                                   "m.yaml");
  return read_model(YamlValue(node, ""));
}

std::vector<PassCounts> counts(const std::string& text) {
  const YamlNode node = parse_yaml(text, "s.yaml");
  return read_passes(YamlValue(node, "passes"), two_layers());
}

MemoryOptions memory_of(const std::string& text) {
  const YamlNode node = parse_yaml(text, "s.yaml");
  return read_memory(YamlValue(node, "memory"));
}

}  // namespace

TEST_CASE("memory is counted as PyTorch does unless LBANN is named", "[scenarios]") {
  using Framework = MemoryOptions::Framework;
  CHECK(read_memory(std::nullopt).framework == Framework::pytorch);
  CHECK(read_memory(std::nullopt).bucket_copies);
  CHECK_FALSE(memory_of("{gradient_as_bucket_view: true}").bucket_copies);
  CHECK_FALSE(memory_of("{framework: tensorflow}").bucket_copies);
  CHECK(memory_of("{attention: flash}").attention == MemoryOptions::Attention::flash);
  const MemoryOptions lbann = memory_of("{framework: lbann}");
  CHECK(lbann.framework == Framework::lbann);
  CHECK(lbann.activations == MemoryOptions::Activations::out_of_place);
  CHECK(lbann.error_signals == MemoryOptions::ErrorSignals::kept);
  CHECK(memory_of("{framework: lbann, free_error_signals: true}").error_signals ==
        MemoryOptions::ErrorSignals::freed);
}

TEST_CASE("memory has the optimizer and the attention of the kernels where it names none", "[scenarios]") {
  KernelChoice kernels;
  kernels.attention = KernelChoice::Attention::flash;
  kernels.optimizer = KernelChoice::UpdateRule::adam;
  CHECK(read_memory(std::nullopt, kernels).attention == MemoryOptions::Attention::flash);
  CHECK(read_memory(std::nullopt, kernels).optimizer == MemoryOptions::OptimizerState::adam);
  const YamlNode node = parse_yaml("{optimizer: sgd, attention: eager}", "s.yaml");
  CHECK(read_memory(YamlValue(node, "memory"), kernels).attention == MemoryOptions::Attention::eager);
  CHECK(read_memory(YamlValue(node, "memory"), kernels).optimizer == MemoryOptions::OptimizerState::sgd);
}

TEST_CASE("memory has the GELU of the kernels, and reads what the program does with logits", "[scenarios]") {
  KernelChoice kernels;
  kernels.gelu = KernelChoice::Gelu::eager;
  kernels.optimizer = KernelChoice::UpdateRule::adamw;
  CHECK(read_memory(std::nullopt, kernels).gelu == KernelChoice::Gelu::eager);
  CHECK(read_memory(std::nullopt, kernels).optimizer == MemoryOptions::OptimizerState::adamw);
  CHECK(memory_of("{optimizer: adamw}").optimizer == MemoryOptions::OptimizerState::adamw);
  CHECK(memory_of("{gelu: eager_erf}").gelu == KernelChoice::Gelu::eager_erf);
  CHECK(memory_of("{}").keep_logits);
  const MemoryOptions set = memory_of("{keep_logits: false, fp32_logits: true, softmax_input: true}");
  CHECK_FALSE(set.keep_logits);
  CHECK(set.fp32_logits);
  CHECK(set.softmax_input);
}

TEST_CASE("memory refuses keys of another framework", "[scenarios][errors]") {
  CHECK_THROWS_WITH(
      memory_of("{free_error_signals: true}"),
      "s.yaml:1:22: memory.free_error_signals: only valid with framework: lbann; the others always "
      "free error signals");
  CHECK_THROWS_WITH(memory_of("{framework: lbann, attention: flash}"),
                    "s.yaml:1:31: memory.attention: not valid with framework: lbann, which holds the scores");
  CHECK_THROWS_WITH(memory_of("{framework: lbann, gelu: eager}"),
                    "s.yaml:1:26: memory.gelu: not valid with framework: lbann, which holds every output");
  CHECK_THROWS_WITH(memory_of("{framework: tensorflow, keep_logits: false}"),
                    "s.yaml:1:38: memory.keep_logits: only valid with framework: pytorch");
  CHECK_THROWS_WITH(memory_of("{framework: tensorflow, gradient_as_bucket_view: true}"),
                    "s.yaml:1:50: memory.gradient_as_bucket_view: only valid with framework: pytorch");
}

TEST_CASE("passes count once by default, and the last matching row of a layer counts", "[scenarios]") {
  const auto found = counts("[{layers: '*_fc', forward: 3}, {layers: disc_fc, forward: 4, update: 0.5}]");
  CHECK(found[0].forward == 3);
  CHECK(found[0].update == 1);
  CHECK(found[1].forward == 4);
  CHECK(found[1].update == 0.5);
  CHECK(found[2].forward == 1);
}

TEST_CASE("a repeated trace takes as much longer as its passes run more often", "[scenarios]") {
  Trace trace;
  trace.layers.resize(3);
  trace.layers[0].forward.seconds = {1, 2};
  trace.layers[0].backward_data.seconds = {10, 20};
  const Trace more = repeated(trace, counts("[{layers: gen_fc, forward: 3, backward_data: 2}]"));
  CHECK(more.layers[0].forward.seconds == std::vector<double>{3, 6});
  CHECK(more.layers[0].backward_data.seconds == std::vector<double>{20, 40});
}

TEST_CASE("passes of layers that do not exist are refused", "[errors]") {
  CHECK_THROWS_WITH(counts("[{layers: conv*}]"),
                    "s.yaml:1:11: passes[0].layers: expected names of layers of two, got \"conv*\"");
}

namespace {

/// Four nodes of three devices.
Platform small() {
  Platform platform;
  platform.nodes = 4;
  platform.devices_per_node = 3;
  return platform;
}

using Devices = std::vector<int>;

/// Mean number of fabric cables between neighbours of a ring over all devices.
double mean_hops(const Platform& platform, PlacementRule rule) {
  const Topology topology(platform);
  const Devices ring = place_workers(platform, platform.devices(), rule, 3);
  double hops = 0;
  for (std::size_t i = 0; i < ring.size(); ++i)
    hops += static_cast<double>(route_between(topology, ring[i], ring[(i + 1) % ring.size()]).size()) - 4;
  return hops / static_cast<double>(ring.size());  // beside device and NIC at both ends
}

}  // namespace

TEST_CASE("packed placement fills node after node", "[scenarios]") {
  CHECK(place_workers(small(), 5, PlacementRule::packed, 1) == Devices{0, 1, 2, 3, 4});
  Platform racks = small();  // of 18 devices: 32 workers are 16 in each of two
  racks.devices_per_node = 18;
  const Devices halves = place_workers(racks, 32, PlacementRule::packed, 1);
  CHECK(std::vector{halves[15], halves[16], halves[31]} == std::vector{15, 18, 33});
  CHECK(place_workers(racks, 24, PlacementRule::packed, 1).back() == 23);
  CHECK(even_ranks_per_node(small(), {0, 1, 2, 3, 4, 5}) == 3);
  CHECK(even_ranks_per_node(small(), {0, 1, 2, 3, 4}) == 1);
  CHECK(even_ranks_per_node(small(), {0, 1}) == 2);
}

TEST_CASE("spread placement puts workers on nodes in turn, and the ranks of a node are consecutive",
          "[scenarios]") {
  CHECK(place_workers(small(), 3, PlacementRule::spread, 1) == Devices{0, 3, 6});
  CHECK(place_workers(small(), 6, PlacementRule::spread, 1) == Devices{0, 1, 3, 4, 6, 9});
  CHECK(even_ranks_per_node(small(), {0, 1, 3, 4, 6, 7, 9, 10}) == 2);
  CHECK(even_ranks_per_node(small(), {0, 1, 3, 4, 6, 9}) == 1);
}

TEST_CASE("every placement uses each device at most once, and all of them at the full size", "[scenarios]") {
  for (const PlacementRule rule : {PlacementRule::packed, PlacementRule::spread, PlacementRule::random}) {
    for (int workers = 1; workers <= 12; ++workers) {
      const Devices devices = place_workers(small(), workers, rule, 5);
      const std::set<int> used(devices.begin(), devices.end());
      CHECK(std::ssize(devices) == workers);
      CHECK(used.size() == devices.size());
      CHECK(*used.begin() >= 0);
      CHECK(*used.rbegin() < 12);
    }
  }
}

TEST_CASE("random placement is decided by the seed and keeps the ranks of a node together", "[scenarios]") {
  const Platform platform = small();
  const Devices first = place_workers(platform, 8, PlacementRule::random, 1);
  CHECK(first == place_workers(platform, 8, PlacementRule::random, 1));
  std::set<Devices> placements;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Devices devices = place_workers(platform, 8, PlacementRule::random, seed);
    placements.insert(devices);
    std::vector<int> nodes;
    for (const int device : devices) {
      if (nodes.empty() || nodes.back() != platform.node_of(device))
        nodes.push_back(platform.node_of(device));
    }
    CHECK(std::set<int>(nodes.begin(), nodes.end()).size() == nodes.size());
  }
  CHECK(placements.size() >= 18);
}

TEST_CASE("on a torus neighbours are one hop apart packed, and a quarter of each ring apart at random",
          "[scenarios]") {
  const Link cable{{4e9}, {1e-7}};
  const Platform platform = platform_of(16 * 16 * 8, TorusShape{{16, 16, 8}, {cable, cable, cable}, 1});
  // Along x; one step of y at the end of each row, one of z at the end of each plane.
  const double turns = 2048 + 128 + 8;
  CHECK(mean_hops(platform, PlacementRule::packed) == Approx(turns / 2048));
  CHECK(mean_hops(platform, PlacementRule::spread) == Approx(turns / 2048));  // one device a node
  CHECK(mean_hops(platform, PlacementRule::random) == Approx(4 + 4 + 2).epsilon(0.02));
}

TEST_CASE("on a dragonfly packed neighbours share a router, random ones cross a global cable",
          "[scenarios]") {
  DragonflyShape shape;
  shape.groups = 8;
  shape.cables_per_group_pair = 4;
  shape.chassis_cable = shape.group_cable = shape.global_cable = {{4e9}, {1e-7}};
  const Platform platform = platform_of(8 * 6 * 16 * 4, shape);
  CHECK(mean_hops(platform, PlacementRule::packed) < 0.35);  // three of four stay at their router
  // A global cable for 7 of 8, and at most two hops in each of the two groups.
  const double random = mean_hops(platform, PlacementRule::random);
  CHECK(random > 7.0 / 8 * (1 + 2));
  CHECK(random < 5);
}
