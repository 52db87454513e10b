#include "sim/network/schedule_link_load.hpp"

#include <catch2/catch.hpp>

namespace stepcast::link_classes_test {

namespace {

auto all_of(double bandwidth) {
  return [bandwidth](int) { return BytesPerSecond{bandwidth}; };
}

}  // namespace

TEST_CASE("links that all patterns load equally become one", "[sim]") {
  const std::vector<LinkWeight> a{{0, 1}, {1, 1}, {2, 1}, {3, 1}}, b{{2, 1}, {3, 1}, {4, 1}};
  const LinkClasses merged = merge_links({&a, &b}, all_of(1e9));
  // {0, 1} by a alone and {4} by b alone are never fuller than {2, 3}, which both load.
  REQUIRE(merged.bandwidths.size() == 1);
  CHECK(merged.bandwidths[0].value == Approx(1e9));
  CHECK(merged.patterns == std::vector<std::vector<int>>{{0}, {0}});
}

TEST_CASE("weights become whole multiples of a scaled bandwidth", "[sim]") {
  const std::vector<LinkWeight> a{{0, 1.5}}, b{{0, 1}};
  const LinkClasses merged = merge_links({&a, &b}, all_of(3e9));
  REQUIRE(merged.bandwidths.size() == 1);
  CHECK(merged.patterns[0].size() == 3);
  CHECK(merged.patterns[1].size() == 2);
  CHECK(merged.bandwidths[0].value == Approx(6e9));
}

TEST_CASE("links of different load are kept where either can be the first to saturate", "[sim]") {
  const std::vector<LinkWeight> a{{0, 2}, {1, 1}}, b{{0, 1}, {1, 2}};
  CHECK(merge_links({&a, &b}, all_of(1e9)).bandwidths.size() == 2);
}

}  // namespace stepcast::link_classes_test
