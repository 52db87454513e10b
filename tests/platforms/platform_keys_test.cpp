#include "platforms/platform_keys.hpp"

#include <catch2/catch.hpp>
#include <filesystem>

#include "core/keys.hpp"

using namespace stepcast;

TEST_CASE("every shipped platform is right by the table of keys", "[platforms][keys]") {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(STEPCAST_SOURCE_DIR "/platforms")) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().string());
    const YamlNode root = read_yaml(entry.path());
    CHECK(key_errors(YamlValue(root, ""), platform_keys(), Required::all) == std::vector<std::string>{});
    ++count;
  }
  CHECK(count > 20);
}

TEST_CASE("keys of another kind of node or network are unknown", "[platforms][keys][errors]") {
  const YamlNode node = parse_yaml("{kind: pcie, peers: [[0, 1]]}", "f");
  CHECK_THROWS_WITH(read_map(YamlValue(node, ""), node_keys(), "pcie"),
                    Catch::Contains("peers: unknown key"));
  CHECK_NOTHROW(read_map(YamlValue(node, ""), node_keys(), "links"));
}
