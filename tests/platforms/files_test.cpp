#include <catch2/catch.hpp>

#include "routes.hpp"

using namespace stepcast;

TEST_CASE("every platform file reads, and its routes join", "[platforms]") {
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(STEPCAST_SOURCE_DIR) + "/platforms")) {
    if (entry.path().extension() != ".yaml") continue;
    CAPTURE(entry.path().stem());
    const Platform platform = platform_file(entry.path().stem());
    CHECK(platform.name == entry.path().stem());
    CHECK(fault_of_routes(platform).empty());
    CHECK(platform.nodes <= platform.max_nodes);
  }
}
