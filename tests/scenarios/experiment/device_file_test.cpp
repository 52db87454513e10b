#include <catch2/catch.hpp>
#include <iterator>

#include "scenario_text.hpp"

using namespace stepcast;

namespace {

/// A file of the repository.
std::string read_text(const std::string& file) {
  std::ifstream in(std::string(STEPCAST_SOURCE_DIR) + "/" + file);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a platform names its device, or a file beside it", "[scenarios][errors]") {
  const TemporaryFolder folder;
  const auto with_device = [&](const std::string& device) {
    std::string text = read_text("platforms/ethernet-cpu.yaml");
    text.replace(text.find("cpu-core"), 8, device);
    const auto file = folder.path() / "mine.yaml";
    std::ofstream(file) << text;
    return shipped_experiment("resnet50-ethernet-cpu", {"platform=" + file.string()});
  };
  std::string device = read_text("models/devices/cpu-core.yaml");
  std::ofstream(folder.path() / "my-core.yaml") << device.replace(device.find("cpu-core"), 8, "my-core");
  CHECK(with_device("my-core.yaml").device.name == "my-core");
  CHECK(with_device("cpu-core").device.name == "cpu-core");
  CHECK_THROWS_WITH(
      with_device("cpu-cor"),
      (folder.path() / "mine.yaml").string() +
          ":5:9: platform.device: expected a name in models/devices/ or a path ending in .yaml, "
          "got \"cpu-cor\"; did you mean \"cpu-core\"?");
}
