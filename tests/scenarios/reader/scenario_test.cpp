#include <catch2/catch.hpp>

#include "scenario_text.hpp"

using namespace stepcast;

namespace {

const std::string kRun = "name: s\nworkers: 1\n";

std::string fed(const std::string& changed) {
  return kRun +
         "calibrate: [{key: k, range: [0 s, 1 s], point: {}, column: step_seconds, value: 2 s, source: "
         "x}]\n" +
         changed;
}

std::string assumed(const std::string& keys) {
  return kRun + "assumed:\n  - {key: k, " + keys + "}\n";
}

Assumption assumption_of(const std::string& keys) {
  return scenario_of(assumed(keys)).assumptions.at(0);
}

}  // namespace

TEST_CASE("a scenario without a sweep is one point named like it", "[scenarios]") {
  const Scenario scenario = scenario_of(kRun + "description: two words\n");
  CHECK(scenario.name == "s");
  CHECK(scenario.description == "two words");
  REQUIRE(scenario.points.size() == 1);
  CHECK(scenario.points[0].name == "s");
  CHECK(scenario.points[0].values.empty());
}

TEST_CASE("the document of a run keeps every key but those of the scenario", "[scenarios]") {
  const Scenario scenario =
      scenario_of(fed("sweep: {a: [1]}\nset: {b: 2}\nassumed: []\npublished: []\nother: 3\n"));
  REQUIRE(scenario.document.entries.size() == 2);
  CHECK(scenario.document.entries[0].first.text == "workers");
  CHECK(scenario.document.entries[1].first.text == "other");
  CHECK(scenario.settings.at(0).path == "b");
}

TEST_CASE("the option --set comes after the scenario's own set, and can replace what the scenario sweeps",
          "[scenarios]") {
  const std::string text = kRun + "set: {a: 1}\nsweep: {w: [1], strategy.bucket: [2, 3]}\n";
  const Scenario scenario =
      scenario_of(text, {"a=2", "sweep.w=[5, 6]", "sweep.strategy.bucket=[tensor]", "name=t"});
  CHECK(scenario.name == "t");
  REQUIRE(scenario.settings.size() == 2);
  CHECK(scenario.settings[0].value.text == "1");
  CHECK(scenario.settings[1].value.text == "2");
  REQUIRE(scenario.points.size() == 2);
  CHECK(scenario.points[0].name == "w=5, strategy.bucket=tensor");
  CHECK(scenario.points[1].name == "w=6, strategy.bucket=tensor");
}

TEST_CASE("the option --set can add a swept key to a sweep, a part of one, or a scenario without any",
          "[scenarios]") {
  CHECK(scenario_of(kRun, {"sweep.a.b=[1, 2]"}).points.at(1).name == "a.b=2");
  CHECK(scenario_of(kRun + "sweep: {w: [1]}\n", {"sweep.a.b=[1, 2]"}).points.at(1).name == "w=1, a.b=2");
  const Scenario parts = scenario_of(kRun + "sweep: [{w: [1]}, {a.b: [1]}]\n", {"sweep[1].a.b=[7]"});
  CHECK(parts.points.at(0).name == "w=1");
  CHECK(parts.points.at(1).name == "a.b=7");
}

TEST_CASE("null takes keys away: of the scenario, of its sweep and of its run", "[scenarios]") {
  const std::string text =
      kRun + "set: {a: 1}\nsweep: {w: [1], strategy.bucket: [2, 3]}\nepoch: {samples: 3}\n";
  CHECK(scenario_of(text, {"sweep=~", "set=~"}).points.size() == 1);
  CHECK(scenario_of(text, {"set=~"}).settings.empty());
  const Scenario fewer = scenario_of(text, {"sweep.strategy.bucket=~", "epoch=~"});
  CHECK(fewer.points.size() == 1);
  CHECK(fewer.sweep_keys == std::vector<std::string>{"w"});
  CHECK(fewer.settings.back().value.kind == YamlNode::Kind::nothing);
  CHECK_THROWS_WITH(scenario_of(text, {"sweep.noise=~"}),
                    "--set sweep.noise=~: sweep.noise: there is no such key");
  CHECK_THROWS_WITH(scenario_of(text, {"sweep.w=[~, 2]"}),
                    "--set sweep.w=[~, 2]: sweep.w[0]: expected a value, got nothing");
  CHECK(scenario_of(kRun + "set: {platform.software: null}\n").settings.back().value.kind ==
        YamlNode::Kind::nothing);
}

TEST_CASE("an invalid scenario is refused with place and reason", "[scenarios][errors]") {
  CHECK_THROWS_WITH(scenario_of("- 1\n"), "s.yaml:1:1: expected a scenario, a mapping, got a list");
  CHECK_THROWS_WITH(scenario_of("workers: 1\n"),
                    "s.yaml:1:1: name: missing (expected a name for the results)");
  for (const char* name : {"A", "a b", "../x", "a/b", "$(touch", "`id`"}) {
    CHECK_THROWS_WITH(
        scenario_of(std::string("name: '") + name + "'\n"),
        std::string("s.yaml:1:7: name: expected small letters, digits, - and _ (it names the results "
                    "folder), got \"") +
            name + "\"");
  }
  const std::string swept = kRun + "sweep: {w: [1], a.b: [2]}\n";
  CHECK_THROWS_WITH(
      scenario_of(swept + "set: {w: 2}\n"),
      "s.yaml:4:10: w: is swept by the scenario; set sweep instead, such as 'sweep={w: [...]}'");
  CHECK_THROWS_WITH(
      scenario_of(swept, {"a.b=2"}),
      "--set a.b=2: a.b: is swept by the scenario; set sweep instead, such as 'sweep={a.b: [...]}'");
  CHECK_THROWS_AS(read_scenario("/nowhere/s.yaml", {}), InputError);
}

TEST_CASE("an assumption is linear or logarithmic in its range and keeps its unit", "[scenarios]") {
  const Assumption linear = assumption_of("range: [1 us, 3 us], why: w");
  CHECK(assumed_value(linear, 0).value.text == "1 us");
  CHECK(assumed_value(linear, 0.25).value.text == "1.5 us");
  CHECK(assumed_value(linear, 0.5).path == "k");
  const Assumption logarithmic = assumption_of("range: [1 GB/s, 4 GB/s], law: log-uniform, why: w");
  CHECK(assumed_value(logarithmic, 0).value.text == "1 GB/s");
  CHECK(assumed_value(logarithmic, 0.5).value.text == "2 GB/s");
  Assumption skew = logarithmic;
  skew.middle = 3;
  CHECK(assumed_value(skew, 0.5).value.text == "3 GB/s");
  CHECK(assumed_value(skew, 0.25).value.text.substr(0, 5) == "1.732");  // the root of 1 x 3
  CHECK(range_text(skew) == "1 GB/s to 4 GB/s, log-uniform, half of it below 3");
  const Assumption plain = assumption_of("range: [-1, 1], law: uniform, why: w");
  CHECK(assumed_value(plain, 0.75).value.text == "0.5");
  CHECK(assumed_value(plain, 0.75).value.place.line == 4);
}

TEST_CASE("a range whose ends have two units is in the unit of its upper end", "[scenarios]") {
  const Assumption range = assumption_of("range: [0 s, 5 ms], why: w");
  CHECK(range.low == 0);
  CHECK(range.high == 5);
  CHECK(range.unit == " ms");
  CHECK(assumption_of("range: [100 us, 2 ms], why: w").low == Approx(0.1));
  CHECK(assumption_of("range: [8 Gbit/s, 2 GB/s], why: w").low == Approx(1));
}

TEST_CASE("an invalid assumption is refused with place and reason", "[scenarios][errors]") {
  const auto refused = [](const std::string& keys, const std::string& message) {
    CHECK_THROWS_WITH(scenario_of(assumed(keys)), "s.yaml:" + message);
  };
  refused("range: [1 us, 3 us]", "4:5: assumed[0].why: missing (expected the reason for this range)");
  refused("why: w", "4:5: assumed[0].range: missing (expected [low, high])");
  refused("range: [1 us], why: w",
          "4:21: assumed[0].range: expected two values, [low, high], such as [0 s, 5 ms], got a list");
  refused(
      "range: 0 s to 5 ms, why: w",
      "4:21: assumed[0].range: expected two values, [low, high], such as [0 s, 5 ms], got \"0 s to 5 ms\"");
  refused("range: [0 s, 5ms], why: w",
          "4:27: assumed[0].range[1]: expected a number, or a number and a unit, got \"5ms\"; did you mean "
          "\"5 ms\"?");
  refused("range: [1 s, 2 GB], why: w",
          "4:21: assumed[0].range: expected two values of one kind, such as [0 s, 5 ms], got 1 s and 2 GB");
  refused("range: [3 us, 1 us], why: w",
          "4:21: assumed[0].range: expected the lower value first, got 3 us and 1 us");
  refused("range: [1 us, 1 us], why: w",
          "4:21: assumed[0].range: expected the lower value first, got 1 us and 1 us");
  refused("range: [fast, 3], why: w",
          "4:22: assumed[0].range[0]: expected a number, or a number and a unit, got \"fast\"");
  refused("range: [0 us, 3 us], law: log-uniform, why: w",
          "4:21: assumed[0].range: expected values > 0 for log-uniform, got 0 us and 3 us");
  refused("range: [1, 3], law: normal, why: w",
          "4:34: assumed[0].law: expected one of uniform, log-uniform, got \"normal\"");
  refused("rnage: [1, 3], why: w",
          "4:14: assumed[0].rnage: unknown key; did you mean \"range\"? (expected one of: key, range, "
          "choices, law, why)");
}

TEST_CASE("a scenario has at most a thousand entries in every list", "[scenarios][errors]") {
  std::string settings = "{k0: 0", assumptions = "[";
  for (int i = 1; i < 1000; ++i) settings += ", k" + std::to_string(i) + ": 0";
  for (int i = 0; i <= 1000; ++i) assumptions += "{key: k, range: [1, 2], why: w}, ";
  CHECK(scenario_of(kRun + "set: " + settings + "}\n").settings.size() == 1000);
  CHECK_THROWS_WITH(scenario_of(kRun + "set: " + settings + ", more: 0}\n"),
                    "s.yaml:3:6: set: more than 1000 values");
  CHECK_THROWS_WITH(scenario_of(kRun + "assumed: " + assumptions + "]\n"),
                    "s.yaml:3:10: assumed: more than 1000 entries");
}
