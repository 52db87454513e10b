// A device file is all that a new GPU needs.
#include <catch2/catch.hpp>

#include "forecast/advice/changes.hpp"
#include "forecast/forecast.hpp"
#include "platforms/discovery/discovered.hpp"
#include "tests/scenarios/scenario_text.hpp"

using namespace stepcast;
using Catch::Matchers::Contains;

namespace {

std::string replaced(std::string text, const std::string& line, const std::string& by) {
  const auto begin = text.find("\n" + line + ":") + 1, end = text.find('\n', begin);
  return text.replace(begin, end - begin, by);
}

/// A copy of h200 under another name, with other figures.
std::string new_device() {
  std::ifstream in(STEPCAST_SOURCE_DIR "/models/devices/h200.yaml");
  std::string text{std::istreambuf_iterator<char>(in), {}};
  text = replaced(text, "name", "name: x1");
  text = replaced(text, "compute_capability", "compute_capability: {value: 7.5, source: a test}");
  text = replaced(text, "nvlink", "nvlink: {value: 33 GB/s, source: a test}");
  text = replaced(text, "successor", "successor: gb300\npcie_generation: {value: 6, source: a test}");
  return replaced(text, "reported_as",
                  "reported_as: [X1 Super, X1]\npeer_access: {value: false, source: a test}");
}

/// A platform of two nodes with two such devices each, as import-platform writes it.
std::string platform_text(const Device& device, const std::string& topology) {
  const DiscoveredPlatform found{"p", "devices/x1.yaml", 2, read_nvidia_topology(topology, "t"), {}};
  return platform_file_text(found, device);
}

}  // namespace

TEST_CASE("a device file alone gives a new GPU its servers, NCCL's constants, its name and its successor",
          "[forecast]") {
  const TemporaryFolder folder;
  std::filesystem::create_directory(folder.path() / "devices");
  std::ofstream(folder.path() / "devices" / "x1.yaml") << new_device();
  CHECK(device_reported_as(folder.path(), "NVIDIA X1") == "x1");
  CHECK(device_reported_as(folder.path(), "X1 Super") == "x1");
  CHECK(device_reported_as(folder.path(), "NVIDIA X1 Super 80GB").empty());
  CHECK(device_reported_as(folder.path(), "NVIDIA GX1").empty());

  const Device device = load_device(folder.path(), "x1");
  CHECK_THAT(
      platform_text(device, "     GPU0 GPU1\nGPU0 X NV4\nGPU1 NV4 X\n"),
      Contains("peer_link: {bandwidth: 33 GB/s, latency: 0.4 us, source: \"a test; latency assumed\"}"));
  std::ofstream(folder.path() / "p.yaml")
      << platform_text(device, "     GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n");
  std::ofstream(folder.path() / "s.yaml")
      << "name: s\nmodel: resnet50\ntrace: derived\nplatform: p.yaml\nbatch_per_worker: 32\n"
         "strategy: {kind: synchronous}\nsweep: {workers: [4]}\n";
  const Scenario scenario = read_scenario(folder.path() / "s.yaml", {});
  Library library;
  const Experiment experiment = build_experiment(scenario.document, scenario.points.front().values, library);
  CHECK(experiment.platform.software.compute_capability == 75);
  CHECK_FALSE(experiment.platform.software.nvls);  // Hopper's
  CHECK_FALSE(experiment.platform.node.peer_access);
  CHECK(experiment.platform.node.device.bandwidth.value == Approx(96e9));  // PCIe 6.0 x16
  const auto changes = possible_changes(scenario.document, experiment, simulate_point(experiment), {}, 0.01);
  CHECK(std::ranges::count(changes, "platform.device: gb300 in place of x1",
                           [](const Change& one) { return to_string(one); }) == 1);
}
