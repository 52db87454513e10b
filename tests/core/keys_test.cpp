#include "core/keys.hpp"

#include <algorithm>
#include <catch2/catch.hpp>

#include "core/error.hpp"

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

namespace {

const std::vector<KindKeys>& sample_kinds() {
  static const std::vector<KindKeys> kinds{
      {"ring",
       {{"kind", "name", "", "required", "the kind"}, {"chunks", "integer", "1 to 8", "1", "chunks"}}},
      {"tree",
       {{"kind", "name", "", "required", "the kind"}, {"degree", "integer", ">= 2", "2", "a degree"}}}};
  return kinds;
}

/// Keys of all types, one of which is a mapping whose keys its `kind` decides.
const Keys& typed_keys() {
  static const Keys keys{{"plan", "mapping", "", "none", "a plan", nullptr, sample_kinds},
                         {"rate", "work rate", "", "none", "a rate"},
                         {"speed", "bandwidth", "> 0", "none", "a speed"},
                         {"pause", "time", ">= 0", "none", "a pause"},
                         {"on", "boolean", "", "none", "a switch"},
                         {"size", "bytes or name", ">= 1 B, tensor", "none", "a size"},
                         {"inner", "mapping", "", "none", "a mapping", inner_keys},
                         {"any", "mapping", "", "none", "any mapping"},
                         {"names", "list of texts", "", "none", "names"},
                         {"pairs", "list of lists", "", "none", "pairs"}};
  return keys;
}

Texts typed_errors(const std::string& text) {
  const YamlNode node = parse_yaml(text, "f");
  return key_errors(YamlValue(node, ""), typed_keys(), Required::all);
}

}  // namespace

TEST_CASE("keys have the paths that lead to them, once for each kind of a mapping", "[core][keys]") {
  CHECK(key_paths(typed_keys()) == Texts{"plan", "plan.kind", "plan.chunks", "plan.degree", "rate", "speed",
                                         "pause", "on", "size", "inner", "inner.size", "any", "names",
                                         "pairs"});
  Texts paths;
  for (const auto& [path, key] : keys_with_paths(typed_keys())) paths.push_back(path);
  CHECK(std::ranges::count(paths, "plan.kind") == 2);
  CHECK(paths.size() == key_paths(typed_keys()).size() + 1);
  Texts of_samples;
  for (const auto& [path, key] : keys_with_paths(sample_keys())) of_samples.push_back(path);
  CHECK(of_samples == key_paths(sample_keys()));  // keys inside lists have no path
  CHECK_THROWS_WITH(keys_named(typed_keys(), {"rate", "rates"}), "keys_named: no key rates");
  CHECK(types_of({"k", "", "", "", ""}).empty());
}

TEST_CASE("each type of value is checked, also inside a mapping whose kind decides", "[core][keys][errors]") {
  CHECK(typed_errors("{plan: {kind: tree, degree: 3}, rate: 1 Tflop/s, speed: 1 GB/s, pause: 1 s, on: true, "
                     "size: tensor, "
                     "inner: {size: 1 B}, any: {x: 1}, names: [a], pairs: [[1, 2]]}") == Texts{});
  CHECK(typed_errors("size: 4 MiB") == Texts{});
  CHECK(typed_errors("plan: {degree: 3}") == Texts{});  // the reader says that the kind is missing
  CHECK(typed_errors("plan: {kind: tree, chunks: 3}") ==
        Texts{"f:1:20: plan.chunks: unknown key (expected one of: kind, degree)"});
  CHECK(typed_errors("plan: {kind: star}") ==
        Texts{"f:1:14: plan.kind: expected one of ring, tree, got \"star\""});
  CHECK(typed_errors("plan: tree3") ==
        Texts{"f:1:7: plan: expected a mapping, such as {kind: tree}, got \"tree3\""});
  CHECK(typed_errors("rate: 1 TB/s") ==
        Texts{"f:1:7: rate: expected a value > 0 with its unit, such as \"19.5 Tflop/s\", got \"1 TB/s\""});
  CHECK(typed_errors("size: 0 B") ==
        Texts{"f:1:7: size: expected bytes or a name (>= 1 B, tensor), got \"0 B\""});
  CHECK(
      typed_errors("size: 25MiB") ==
      Texts{
          "f:1:7: size: expected bytes or a name (>= 1 B, tensor), got \"25MiB\"; did you mean \"25 MiB\"?"});
  CHECK(typed_errors("size: tensors") == Texts{"f:1:7: size: expected bytes or a name (>= 1 B, tensor), got "
                                               "\"tensors\"; did you mean \"tensor\"?"});
  CHECK(typed_errors("inner: 3") == Texts{"f:1:8: inner: expected a mapping with keys size, got \"3\""});
  CHECK(typed_errors("any: 3") == Texts{"f:1:6: any: expected a mapping, got \"3\""});
  CHECK(typed_errors("names: 3") == Texts{"f:1:8: names: expected a list, got \"3\""});
  CHECK(typed_errors("[1, 2]") ==
        Texts{"f:1:1: expected a mapping with keys plan, rate, speed, pause, on, size, inner, any, names, "
              "pairs, got a list"});
  CHECK(typed_errors("names: [[1]]").size() == 1);
}

TEST_CASE("a range whose ends are no numbers is none", "[core][keys]") {
  const auto range = [](const std::string& text) { return number_range({"k", "number", text, "", ""}); };
  CHECK(!range("1 to many"));
  CHECK(!range("few to 3"));
  CHECK(!range(">= some"));
  CHECK(range("> 1 GB/s")->low == 1e9);
  CHECK(range(">= 2 KiB")->low == 2048);
  CHECK(allowed_words({"k", "name", "f32, Mixed", "", ""}).empty());  // no word of a list of names
}
