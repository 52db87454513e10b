// The XML of lstopo, which hwloc reads in a process of its own; few inputs: each takes milliseconds, and one
// whose cores have no number half a second and 0.6 GB.
#include "core/yaml.hpp"
#include "platforms/discovery/discovered.hpp"
#include "platforms/platform.hpp"
#include "tests/fuzz/input.hpp"

using namespace stepcast;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  refuses_or_reads([&] {
    const std::string written = platform_file_text({"p", "d", 1, read_hwloc_topology(text, "t"), {}}, {});
    const YamlNode root = parse_yaml(written, "written.yaml");
    read_platform(YamlValue(root, ""), {});
  });
  return 0;
}
