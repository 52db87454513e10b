#include "core/text.hpp"

#include <catch2/catch.hpp>

using namespace stepcast;

TEST_CASE("nearest_word suggests a close word and nothing for a far one", "[core]") {
  CHECK(nearest_word("bandwith", {"latency", "bandwidth"}) == "bandwidth");
  CHECK(nearest_word("zzz", {"latency", "bandwidth"}).empty());
  CHECK(nearest_word("", {"a", "b"}).empty());
}

TEST_CASE("nearest_word prefers words that begin with or contain the text to similar ones", "[core]") {
  CHECK(nearest_word("v100", {"b200", "p100-sxm2", "v100-sxm2-16gb"}) == "v100-sxm2-16gb");
  CHECK(nearest_word("h200", {"b200", "gh200-96gb"}) == "gh200-96gb");
  CHECK(nearest_word("v100", {"a-v100", "v100-sxm2-16gb", "v100-pcie"}) == "v100-pcie");
  CHECK(nearest_word("band", {"latency", "bandwidth"}) == "bandwidth");
  CHECK(nearest_word("V100", {"b200", "v100-sxm2-16gb"}) == "v100-sxm2-16gb");
  CHECK(nearest_word("BF16", {"f16", "bf16"}) == "bf16");
  CHECK(nearest_word("ba", {"latency", "bandwidth"}).empty());  // two letters do not suffice
}
