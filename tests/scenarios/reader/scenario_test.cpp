#include "scenarios/reader/scenario.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "scenario_text.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario_documents.hpp"

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

namespace {

class Files {
 public:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
  }

  Scenario read(const std::string& name, const std::vector<Assignment>& settings = {}) const {
    return read_scenario(folder_.path() / name, settings);
  }

  std::vector<std::string> scenarios(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& path : scenarios_in(folder_.path() / name)) names.push_back(path.filename().string());
    return names;
  }

  /// The error without the folder, whose name is random.
  std::string error(const std::string& name) const {
    try {
      read(name);
    } catch (const InputError& error) {
      std::string message = error.what();
      const std::string folder = folder_.path().string() + "/";
      for (auto at = message.find(folder); at != std::string::npos; at = message.find(folder))
        message.erase(at, folder.size());
      return message;
    }
    return "read";
  }

 private:
  TemporaryFolder folder_;
};

const std::string kBase =
    "name: base\nmodel: small-cnn\nstrategy: {kind: synchronous, bucket: 1 MiB, overlap: true}\nnoise: "
    "{jitter: trace}\n"
    "sweep: {workers: [1, 2], placement: [packed]}\n";

}  // namespace

TEST_CASE("a scenario takes over the keys that it does not give", "[scenarios][defaults]") {
  Files files;
  files.write("base.yaml", kBase);
  files.write(
      "own.yaml",
      "name: own\ndefaults: base.yaml\nstrategy: {bucket: 2 MiB}\nnoise: null\nsweep: {workers: [4]}\n");
  const Scenario scenario = files.read("own.yaml");
  CHECK(scenario.name == "own");
  REQUIRE(scenario.points.size() == 1);
  CHECK(scenario.points[0].name == "workers=4");
  CHECK(find_path(scenario.document, "strategy.bucket")->text == "2 MiB");
  CHECK(find_path(scenario.document, "strategy.overlap")->text == "true");
  CHECK(find_path(scenario.document, "noise") == nullptr);
  CHECK(find_path(scenario.document, "defaults") == nullptr);
  REQUIRE(scenario.defaults.size() == 1);
  CHECK(scenario.defaults[0].filename() == "base.yaml");
}

TEST_CASE("a mapping of another kind replaces the inherited one as a whole", "[scenarios][defaults]") {
  Files files;
  files.write("base.yaml", kBase);
  files.write("own.yaml", "name: own\ndefaults: base.yaml\nstrategy: {kind: zero, stage: 1}\n");
  CHECK(find_path(files.read("own.yaml").document, "strategy.bucket") == nullptr);
}

TEST_CASE("errors of inherited keys name the file that has them", "[scenarios][defaults][errors]") {
  Files files;
  files.write("base.yaml", kBase + "assumed: [{key: k, why: w}]\n");
  files.write("own.yaml", "name: own\ndefaults: base.yaml\n");
  CHECK(files.error("own.yaml") == "base.yaml:6:11: assumed[0].range: missing (expected [low, high])");
  files.write("nameless.yaml", "defaults: base.yaml\n");
  CHECK(files.error("nameless.yaml") == "nameless.yaml:1:1: name: missing (expected a name for the results)");
}

TEST_CASE("a circle and a long line of inheritance are refused", "[scenarios][defaults][errors]") {
  Files files;
  files.write("a.yaml", "name: a\ndefaults: b.yaml\n");
  files.write("b.yaml", "name: b\ndefaults: ./a.yaml\n");
  CHECK(files.error("a.yaml") == "b.yaml:2:11: defaults: ./a.yaml would inherit from itself");
  for (int i = 0; i < 9; ++i)
    files.write(fmt::format("l{}.yaml", i), fmt::format("name: l\ndefaults: l{}.yaml\n", i + 1));
  files.write("l9.yaml", "name: l\n");
  CHECK(files.error("l0.yaml") == "l7.yaml:2:11: defaults: more than 8 scenarios inherit from one another");
  CHECK(files.error("l3.yaml") == "read");
  files.write("lost.yaml", "name: lost\ndefaults: nowhere.yaml\n");
  CHECK(files.error("lost.yaml") == "lost.yaml:2:11: defaults: there is no file nowhere.yaml");
  CHECK_THROWS_WITH(files.read("l9.yaml", {parse_assignment("defaults=b.yaml")}),
                    Catch::Contains("defaults: can only be given in a scenario's file"));
}

TEST_CASE("a file may hold several scenarios, which may take over each other's keys",
          "[scenarios][defaults]") {
  Files files;
  files.write("two.yaml", kBase + "---\nname: own\ndefaults: base\nstrategy: {bucket: 2 MiB}\n");
  const auto paths = files.scenarios("two.yaml");
  CHECK(paths == std::vector<std::string>{"two.yaml#base", "two.yaml#own"});
  const Scenario scenario = files.read("two.yaml#own");
  CHECK(scenario.name == "own");
  CHECK(scenario.points.size() == 2);
  CHECK(find_path(scenario.document, "strategy.bucket")->text == "2 MiB");
  CHECK(find_path(scenario.document, "strategy.overlap")->text == "true");
  CHECK(files.scenarios("two.yaml#own") == std::vector<std::string>{"two.yaml#own"});
  files.write("other.yaml", "name: other\ndefaults: two.yaml#own\n");
  CHECK(find_path(files.read("other.yaml").document, "strategy.bucket")->text == "2 MiB");
  CHECK(files.scenarios("other.yaml") == std::vector<std::string>{"other.yaml"});
}

TEST_CASE("a scenario of a file with several is named, with an error where it is not there",
          "[scenarios][defaults][errors]") {
  Files files;
  files.write("two.yaml",
              kBase + "---\nname: own\ndefaults: bsae\n---\nname: self\ndefaults: self\n---\nnme: x\n");
  CHECK(files.error("two.yaml") ==
        "two.yaml: expected # and the name of one of its scenarios after the path, got \"\" (expected one "
        "of: base, "
        "own, self, )");
  CHECK(files.error("two.yaml#owm") ==
        "two.yaml: expected # and the name of one of its scenarios after the path, got \"owm\"; did you mean "
        "\"own\"? (expected one of: base, own, self, )");
  CHECK(files.error("two.yaml#own") ==
        "two.yaml:8:11: defaults: expected the path of a scenario, ending in .yaml, or the name of another "
        "scenario in "
        "this file, got \"bsae\"");
  CHECK(files.error("two.yaml#self") ==
        "two.yaml:11:11: defaults: " + std::string("two.yaml#self would inherit from itself"));
  files.write("own.yaml", "name: own\ndefaults: own\n");
  CHECK(files.error("own.yaml") == "own.yaml:2:11: defaults: own.yaml#own would inherit from itself");
}

TEST_CASE("version 1 of a file is read, and another version is refused in one line", "[scenarios][errors]") {
  Files files;
  files.write("one.yaml", "version: 1\nname: one\n");
  CHECK(files.error("one.yaml") == "read");
  files.write("two.yaml", "version: 2\nname: two\n");
  CHECK(files.error("two.yaml") ==
        "two.yaml:1:10: version: expected 1, the version of files that this stepcast reads, got \"2\"");
}

namespace {

/// A temporary folder with one file, "mine.yaml".
struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("stepcast-data-files-" + std::to_string(getpid()));

  Folder() {
    std::filesystem::create_directories(path);
    std::ofstream(path / "mine.yaml") << "name: mine\n";
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

std::filesystem::path file_of(const YamlNode& node) {
  return data_file(YamlValue(node, "model"), "models");
}

}  // namespace

TEST_CASE("a path in a scenario is taken from the scenario's folder", "[scenarios]") {
  const Folder folder;
  CHECK(file_of(parse_yaml("mine.yaml", (folder.path / "scenario.yaml").string())) ==
        folder.path / "mine.yaml");
}

TEST_CASE("a path typed on the command line is taken from the current folder", "[scenarios]") {
  const Folder folder;
  YamlNode set = parse_yaml("mine.yaml", "--set model=" + (folder.path / "mine.yaml").string());
  set.place.line = 0;
  CHECK_THROWS_WITH(file_of(set), Catch::EndsWith(": model: there is no file mine.yaml"));
  CHECK_THROWS_WITH(file_of(command_line_name("mine.yaml")),
                    "command line: model: there is no file mine.yaml");
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path);
  CHECK(file_of(command_line_name("mine.yaml")) == "mine.yaml");
  CHECK(file_of(set) == "mine.yaml");
  std::filesystem::current_path(before);
}

TEST_CASE("a name that is not in the data folder is refused with the nearest one", "[scenarios][errors]") {
  setenv("STEPCAST_DATA", STEPCAST_SOURCE_DIR, 1);
  CHECK(file_of(command_line_name("resnet50")) ==
        std::filesystem::path(STEPCAST_SOURCE_DIR) / "models/resnet50.yaml");
  CHECK(file_of(command_line_name("llama2-7b")) ==
        std::filesystem::path(STEPCAST_SOURCE_DIR) / "models/library/transformers/llama2-7b.yaml");
  CHECK_THROWS_WITH(file_of(command_line_name("llama2-8b")), Catch::Contains("did you mean \"llama2-7b\"?"));
  CHECK_THROWS_WITH(
      file_of(command_line_name("resnet5")),
      "command line: model: expected a name in models/ or a path ending in .yaml, got \"resnet5\"; did "
      "you mean \"resnet50\"?");
}

TEST_CASE("a scenario is found by its name, or its path in the sources, from any folder", "[scenarios]") {
  setenv("STEPCAST_DATA", STEPCAST_SOURCE_DIR, 1);
  const Folder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path);
  const std::string shipped = STEPCAST_SOURCE_DIR "/scenarios/quickstart.yaml";
  CHECK(scenario_file("quickstart") == shipped);
  CHECK(scenario_file("scenarios/quickstart.yaml") == shipped);
  CHECK(scenario_file("learn/small-cnn") == STEPCAST_SOURCE_DIR "/scenarios/learn/small-cnn.yaml");
  for (const std::string other :
       {"quickstart.yaml", "scenarios/../models/resnet50.yaml", "scenarios/none.yaml", "-"})
    CHECK(scenario_file(other) == other);
  std::filesystem::create_directory(folder.path / "scenarios");  // one's own file goes first
  std::ofstream(folder.path / "scenarios/quickstart.yaml") << "name: mine\n";
  CHECK(scenario_file("scenarios/quickstart.yaml") == "scenarios/quickstart.yaml");
  std::filesystem::current_path(before);
}
