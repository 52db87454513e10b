#include "report/schema/json_schema.hpp"

#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>

using namespace stepcast;

namespace {

const Keys& size_keys() {
  static const Keys keys{{"size", Allowed(KeyType::bytes, {1}), "required", "a size"}};
  return keys;
}

Keys sample_keys() {
  return joined_keys(
      {{{"kind", Allowed(KeyType::name, {}, {"flat", "deep"}), "required", "the kind | or not"},
        {"share", Allowed(KeyType::number, {.low = 0, .high = 1, .without_high = true}), "0", "a share"},
        {"bucket", Allowed({KeyType::bytes, KeyType::name}, {1}, {"model"}), "25 MiB", "a bucket", nullptr},
        {"inner", KeyType::mapping, "none", "a mapping", size_keys}},
       only_with("deep", {{"levels", Allowed(KeyType::integers, {1, 7}), "required", "levels"}})});
}

const std::vector<KindKeys>& strategies_of_sample() {
  static const std::vector<KindKeys> kinds{
      {"ring",
       {{"kind", Allowed(KeyType::name, {}, {}, "see the list"), "required", "the kind"},
        {"bucket", KeyType::bytes, "none", ""}}},
      {"tree",
       {{"kind", Allowed(KeyType::name, {}, {}, "see the list"), "required", "the kind"},
        {"deep", KeyType::boolean, "none", ""}}}};
  return kinds;
}

Keys sample_with_sweep() {
  Key strategy{"strategy", KeyType::mapping, "required", "how to train"};
  strategy.by_kind = strategies_of_sample;
  return {strategy,
          {"placement", Allowed(KeyType::name, {}, {"packed", "spread"}), "packed", "where"},
          {"set", KeyType::settings, "none", "values"},
          {"sweep", KeyType::sweep, "none", "values that vary"}};
}

}  // namespace

TEST_CASE("the kind of a mapping decides which keys it has, and without a kind it has those of any",
          "[report][schema]") {
  const auto schema = nlohmann::json::parse(json_schema("sample", sample_with_sweep(), Required::in_lists));
  const auto& strategy = schema["properties"]["strategy"];
  CHECK(strategy["propertyNames"]["enum"] == nlohmann::json{"kind", "bucket", "deep"});
  CHECK(strategy["properties"]["kind"]["enum"] == nlohmann::json{"ring", "tree"});
  CHECK(strategy["allOf"][1]["then"]["$ref"] == "#/definitions/strategy_tree");
  CHECK(!schema["definitions"]["strategy_tree"]["properties"].contains("bucket"));
}

TEST_CASE("values of a sweep and of set are among the words of their keys", "[report][schema]") {
  const auto schema = nlohmann::json::parse(json_schema("sample", sample_with_sweep(), Required::in_lists));
  const auto& swept = schema["definitions"]["sweep_product"]["properties"];
  CHECK(swept["strategy.kind"]["items"]["enum"] == nlohmann::json{"ring", "tree"});
  CHECK(swept["strategy.deep"]["items"]["enum"] == nlohmann::json{true, false});
  CHECK(swept["placement"]["items"]["enum"] == nlohmann::json{"packed", "spread"});
  CHECK(swept["strategy.bucket"]["$ref"] == "#/definitions/swept_values");
  CHECK(schema["definitions"]["values"]["properties"]["placement"]["enum"] ==
        nlohmann::json{"packed", "spread", nullptr});
}

TEST_CASE("a table of keys becomes a JSON Schema", "[report][schema]") {
  const auto schema = nlohmann::json::parse(json_schema("sample", sample_keys(), Required::all));
  CHECK(schema["$schema"] == "http://json-schema.org/draft-07/schema#");
  CHECK(schema["additionalProperties"] == false);
  CHECK(schema["required"] == nlohmann::json{"kind"});
  CHECK(schema["properties"]["kind"]["enum"] == nlohmann::json{"flat", "deep"});
  CHECK(schema["properties"]["share"]["exclusiveMaximum"] == 1);
  CHECK(schema["properties"]["bucket"]["anyOf"].size() == 2);
  CHECK(schema["properties"]["inner"]["anyOf"][0]["$ref"] == "#/definitions/inner");
  CHECK(schema["definitions"]["inner"]["required"] == nlohmann::json{"size"});
  REQUIRE(schema["allOf"].size() == 2);
  CHECK(schema["allOf"][0]["then"]["propertyNames"]["enum"] ==
        nlohmann::json{"kind", "share", "bucket", "inner"});
  CHECK(schema["allOf"][1]["then"]["required"] == nlohmann::json{"kind", "levels"});
}

TEST_CASE("a schema whose keys may come from a sweep requires none of them", "[report][schema]") {
  const auto schema = nlohmann::json::parse(json_schema("sample", sample_keys(), Required::in_lists));
  CHECK(!schema.contains("required"));
  CHECK(!schema["definitions"]["inner"].contains("required"));
}

TEST_CASE("a table of keys becomes a Markdown table", "[report][schema]") {
  CHECK(key_table(sample_keys()) ==
        "| key | type | default | meaning | only with |\n"
        "|---|---|---|---|---|\n"
        "| `kind` | `flat`, `deep` | required | the kind \\| or not | |\n"
        "| `share` | number, 0 to below 1 | 0 | a share | |\n"
        "| `bucket` | bytes or name: >= 1 B, `model` | `25 MiB` | a bucket | |\n"
        "| `inner` | mapping | none | a mapping | |\n"
        "| `levels` | list of integers, 1 to 7 | required | levels | `deep` |\n");
}
