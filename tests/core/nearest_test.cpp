#include "core/nearest.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

TEST_CASE("nearest_word suggests a close word and nothing for a far one", "[core]") {
  CHECK(nearest_word("bandwith", {"latency", "bandwidth"}) == "bandwidth");
  CHECK(nearest_word("zzz", {"latency", "bandwidth"}).empty());
  CHECK(nearest_word("", {"a", "b"}).empty());
}
