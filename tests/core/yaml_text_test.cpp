#include "core/yaml_text.hpp"

#include <catch2/catch.hpp>

#include "core/yaml.hpp"

namespace stepcast::test {

TEST_CASE("a quoted text is read back as it was", "[core]") {
  for (const std::string text : {"a \"b\" \\ c", "null", "12", "# {a: b}", "line\n\ttab", "\u00e4 \u20ac"}) {
    const YamlNode node = parse_yaml("key: " + quoted(text), "test.yaml");
    CHECK(YamlValue(node, "").any_map().at("key").text() == text);
  }
  CHECK(quoted("\x01 \x7f") == "\"\\x01 \\x7f\"");
  CHECK(quoted("v7.\xE5s \xE2\x82\xAC") == "\"v7.\uFFFDs \u20AC\"");  // bytes that are no text are replaced
}

TEST_CASE("numbers are a list with six significant digits", "[core]") {
  CHECK(numbers({1.5, 2e-6, 1.0 / 3}) == "[1.5, 2e-06, 0.333333]");
  CHECK(numbers({}) == "[]");
}

}  // namespace stepcast::test
