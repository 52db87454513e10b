#include "strategies/registry.hpp"

#include <catch2/catch.hpp>
#include <set>
#include <stdexcept>

#include "core/error.hpp"
#include "core/text.hpp"
#include "tests/sim/planned_run.hpp"

namespace stepcast::registry_test {

namespace {

/// The example with one key set to a value.
std::string with(const std::string& example, const std::string& key, const std::string& value) {
  std::string text;
  for (const auto& [name, given] : parse_yaml(example, "example.yaml").entries) {
    if (name.text == key) continue;
    std::string items;
    for (const YamlNode& item : given.items) items += (items.empty() ? "" : ", ") + item.text;
    text += name.text + ": " + (given.items.empty() ? given.text : "[" + items + "]") + ", ";
  }
  return "{" + text + key + ": " + value + "}";
}

std::string refusal(const Strategy& strategy, const std::string& text) {
  try {
    const PlannedRun run(4, example_model(strategy), text, 4);
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

}  // namespace

TEST_CASE("every strategy has a kind of its own, a line, a source and an example that can be planned",
          "[sim][registry]") {
  std::set<std::string> kinds;
  for (const Strategy& strategy : strategies()) {
    CAPTURE(strategy.kind);
    CHECK(kinds.insert(strategy.kind).second);
    CHECK(!strategy.what.empty());
    CHECK(!strategy.source.empty());
    CHECK(refusal(strategy, strategy.example) == "accepted");
  }
}

TEST_CASE("a program adds strategies of its own, with kinds that no other has", "[sim][registry]") {
  Strategy own = strategies().front();
  own.kind = "own";
  add_strategy(own);
  CHECK(strategy_names().back() == "own");
  CHECK_THROWS_AS(add_strategy(own), std::invalid_argument);
  CHECK_THROWS_AS(add_strategy(strategies().front()), std::invalid_argument);
}

TEST_CASE("every strategy reads every key of its table, and its table says what the key is",
          "[sim][registry]") {
  for (const Strategy& strategy : strategies()) {
    std::set<std::string> names;
    for (const Key& key : strategy.keys) {
      CAPTURE(strategy.kind, key.name);
      const std::string name(key.name);
      CHECK(names.insert(name).second);
      CHECK(!key.default_value.empty());
      CHECK(!key.meaning.empty());
      if (key.name == "kind" || key.name == "part_trace" || key.name == "apply_trace") continue;
      // No key takes such a mapping, so a reader that looks at the key refuses it with the key's path.
      const std::string error = refusal(strategy, with(strategy.example, name, "{no: key}"));
      CHECK(error.find(": strategy." + name) != std::string::npos);
      if (key.name != "validation" && key.inside == nullptr)
        CHECK(error.find("unknown key") == std::string::npos);
    }
  }
}

TEST_CASE("every strategy refuses an unknown key and suggests the nearest", "[sim][registry]") {
  for (const Strategy& strategy : strategies()) {
    CAPTURE(strategy.kind);
    const std::string error = refusal(strategy, with(strategy.example, "compute_factr", "2"));
    CHECK(error.find("did you mean \"compute_factor\"?") != std::string::npos);
    CHECK(error.find("strategy.yaml:1:") == 0);
  }
}

TEST_CASE("names that others give to a strategy suggest its kind", "[sim][registry]") {
  CHECK(nearest_word("DDP", strategy_names()) == "synchronous");
  CHECK(nearest_word("moe", strategy_names()) == "mixture_of_experts");
  CHECK(nearest_word("easgd", strategy_names()) == "elastic_averaging");
}

TEST_CASE("every required key of a strategy is missed by its name", "[sim][registry]") {
  for (const Strategy& strategy : strategies()) {
    for (const Key& key : strategy.keys) {
      if (key.default_value != "required" || key.name == "kind") continue;
      CAPTURE(strategy.kind, key.name);
      const std::string name(key.name);
      std::string text = with(strategy.example, name, "0");
      text.replace(text.rfind(", " + name), std::string::npos, "}");
      CHECK(refusal(strategy, text).find("strategy." + name + ": missing") != std::string::npos);
    }
  }
}

}  // namespace stepcast::registry_test
