#include <catch2/catch.hpp>
#include <functional>

#include "platforms/platform_table.hpp"
#include "routes.hpp"
#include "shapes.hpp"

using namespace stepcast;

namespace {

/// Bandwidth of all links whose name begins with `part`.
double sum_of(const Topology& topology, const std::string& kind,
              const std::function<bool(const std::string&)>& counts) {
  double sum = 0;
  for (int id = 0; id < topology.link_count(); ++id) {
    if (topology.link_kind(id) == kind && counts(topology.link_name(id)))
      sum += topology.link(id).bandwidth.value;
  }
  return sum;
}

}  // namespace

TEST_CASE("half of the NICs limit the bisection of a switch and of a full fat tree", "[platforms]") {
  CHECK(bisection(platform_of(10, FatTreeShape{})).bandwidth.value == Approx(5e9));
  const FatTreeShape full{{{8, 1, 8, {0}}, {8, 1, 8, {0}}}, false};
  CHECK(bisection(platform_of(128, full)).bandwidth.value == Approx(64e9));
}

TEST_CASE("a taper limits the bisection to the cables above half of the leaves", "[platforms]") {
  const Platform platform = platform_of(64, FatTreeShape{{{8, 2, 4, {0}}, {4, 1.5, 5, {0}}}, false});
  const Topology topology(platform);
  const double above_first_half = sum_of(topology, "level-2 switch - spine", [](const std::string& name) {
    return name.starts_with("level-2 switch ") && std::stoi(name.substr(15)) < 4;
  });
  CHECK(bisection(platform).bandwidth.value == Approx(64e9 / 2 / 2 / 1.5));
  CHECK(bisection(platform).bandwidth.value == Approx(above_first_half));
  CHECK(bisection(platform_of(8, FatTreeShape{{{8, 2, 4, {0}}}, false})).bandwidth.value == Approx(4e9));
}

TEST_CASE("the bisection of a dragonfly is that of the cables between two halves of its groups",
          "[platforms]") {
  DragonflyShape shape;
  shape.groups = 4;
  shape.cables_per_group_pair = 3;
  shape.chassis_cable = shape.group_cable = {{5e9}, {0}};
  shape.global_cable = {{4e9}, {0}};
  const Platform platform = platform_of(4 * 384, shape);
  const double crossing = sum_of(Topology(platform), "global cable", [](const std::string& name) {
    return name[6] < '2' && name[name.find("-> group ") + 9] >= '2';
  });
  CHECK(crossing == Approx(2 * 2 * 3 * 4e9));
  CHECK(bisection(platform).bandwidth.value == Approx(crossing));
  CHECK(bisection(platform_of(384, shape)).method == "half of all NICs");
}

TEST_CASE("the bisection of a torus is its weakest pair of cuts", "[platforms]") {
  const TorusShape shape{{4, 6, 8}, {{{{9e9}, {0}}, {{4e9}, {0}}, {{9e9}, {0}}}}, 2};
  Platform platform = platform_of(2 * 4 * 6 * 8, shape);
  platform.network.nic.bandwidth = {20e9};
  CHECK(bisection(platform).bandwidth.value == Approx(2 * 4 * 8 * 4e9));
  CHECK(bisection(platform).method == "two cuts across y of the whole torus");
}

TEST_CASE("the long link is the bisection of two sites", "[platforms]") {
  CHECK(bisection(platform_of(8, SitesShape{2, {{125e6}, {0.05}}})).bandwidth.value == Approx(125e6));
}
