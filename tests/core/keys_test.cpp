#include "core/keys.hpp"

#include <catch2/catch.hpp>

#include "core/error.hpp"
#include "core/key_check.hpp"

using namespace stepcast;

namespace {

const Keys& inner_keys() {
  static const Keys keys{{"size", "bytes", ">= 1 B", "required", "a size"}};
  return keys;
}

Keys sample_keys() {
  return joined_keys({{{"kind", "name", "flat, deep", "required", "the kind"},
                       {"count", "integer", "1 to 10,000", "1", "a count"},
                       {"share", "number", "0 to below 1", "0", "a share"},
                       {"inner", "mapping", "", "none", "a mapping", inner_keys},
                       {"rows", "list of mappings", "", "none", "rows", inner_keys}},
                      only_with("deep", {{"levels", "list of integers", "1 to 7", "none", "levels"}})});
}

std::vector<std::string> errors_of(const std::string& text) {
  const YamlNode node = parse_yaml(text, "f");
  return key_errors(YamlValue(node, ""), sample_keys(), Required::all);
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("a former name of a key is refused with the present one", "[core][keys]") {
  const Keys keys{renamed({"split_points", "list of names", "", "none", "points"}, "cuts")};
  const YamlNode node = parse_yaml("cuts: [a]", "f");
  CHECK_THROWS_WITH(read_map(YamlValue(node, "strategy"), keys),
                    "f:1:7: strategy.cuts: unknown key; did you mean \"split_points\"?");
  CHECK(key_errors(YamlValue(node, "strategy"), keys, Required::all) ==
        Texts{"f:1:7: strategy.cuts: unknown key; did you mean \"split_points\"?"});
}

TEST_CASE("the types and words of a key are its alternatives", "[core][keys]") {
  CHECK(types_of({"k", "name, path or mapping", "", "", ""}) == Texts{"name", "path", "mapping"});
  CHECK(types_of({"k", "bytes", "", "", ""}) == Texts{"bytes"});
  CHECK(allowed_words({"k", "bytes or name", ">= 1 B, tensor, model", "", ""}) == Texts{"tensor", "model"});
  CHECK(allowed_words({"k", "name", "stepcast show strategies lists them", "", ""}).empty());
}

TEST_CASE("a range is read from its text", "[core][keys]") {
  const auto range = [](const std::string& text) { return number_range({"k", "number", text, "", ""}); };
  CHECK(range("1 to 10,000")->high == 10000);
  CHECK(range("0 to below 1")->without_high);
  CHECK(range("> 0")->without_low);
  CHECK(range(">= 1 ms, best")->low == 1e-3);
  CHECK(!range("a divisor of the workers"));
}

TEST_CASE("the keys of a kind are those of all kinds and its own", "[core][keys]") {
  CHECK(names_of(keys_of_kind(sample_keys(), "flat")) == Texts{"kind", "count", "share", "inner", "rows"});
  CHECK(names_of(keys_of_kind(sample_keys(), "deep")).back() == "levels");
  CHECK(key_paths(sample_keys()) == Texts{"kind", "count", "share", "inner", "inner.size", "rows", "levels"});
}

TEST_CASE("a mapping without errors has none, and every error of a mapping is found",
          "[core][keys][errors]") {
  CHECK(errors_of("{kind: deep, count: 10000, share: 0.5, inner: {size: 1 B}, rows: [{size: 2 B}], levels: "
                  "[1, 7]}") == Texts{});
  CHECK(errors_of("{count: 0, share: 1, inner: {}, rows: [{size: 1}], levels: [8]}") ==
        Texts{"f:1:9: count: expected an integer from 1 to 10000, got \"0\"",
              "f:1:19: share: expected a number 0 to below 1, got \"1\"",
              "f:1:29: inner.size: missing (expected a size)",
              "f:1:47: rows[0].size: expected a value >= 1 with its unit, such as \"4 MiB\", got \"1\"",
              "f:1:61: levels[0]: expected an integer from 1 to 7, got \"8\"",
              "f:1:1: kind: missing (expected the kind)"});
  CHECK(errors_of("{kind: flat, levels: [1], other: 2}") ==
        Texts{"f:1:14: levels: unknown key (expected one of: kind, count, share, inner, rows)",
              "f:1:27: other: unknown key (expected one of: kind, count, share, inner, rows)"});
}

TEST_CASE("a value that must have a source is refused without one", "[core][keys][errors]") {
  const Keys must = with_sources({{"peak", "number", ">= 0", "required", "a rate"}}, Key::Source::must);
  const auto errors = [&](const std::string& text) {
    const YamlNode node = parse_yaml(text, "f");
    return key_errors(YamlValue(node, ""), must, Required::all);
  };
  CHECK(errors("{peak: {value: 1, source: x}}") == Texts{});
  CHECK(errors("{peak: {value: 1}}").size() == 1);
  CHECK(errors("{peak: 1}") == Texts{"f:1:8: peak: expected {value: ..., source: ...}, got \"1\""});
}
