#include <fmt/format.h>

#include <catch2/catch.hpp>

#include "scenario_text.hpp"
#include "scenarios/reader/scenario.hpp"

using namespace stepcast;

namespace {

class Files {
 public:
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_.path() / name) << text;
  }

  Scenario read(const std::string& name, const std::vector<Assignment>& settings = {}) const {
    return read_scenario(folder_.path() / name, settings);
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
  CHECK(files.error("l0.yaml") == "l7.yaml:2:11: defaults: more than 8 files inherit from one another");
  CHECK(files.error("l3.yaml") == "read");
  files.write("lost.yaml", "name: lost\ndefaults: nowhere.yaml\n");
  CHECK(files.error("lost.yaml") == "lost.yaml:2:11: defaults: there is no file nowhere.yaml");
  CHECK_THROWS_WITH(files.read("l9.yaml", {parse_assignment("defaults=b.yaml")}),
                    Catch::Contains("defaults: can only be given in a scenario's file"));
}

TEST_CASE("version 1 of a file is read, and another version is refused in one line", "[scenarios][errors]") {
  Files files;
  files.write("one.yaml", "version: 1\nname: one\n");
  CHECK(files.error("one.yaml") == "read");
  files.write("two.yaml", "version: 2\nname: two\n");
  CHECK(files.error("two.yaml") ==
        "two.yaml:1:10: version: expected 1, the version of files that this stepcast reads, got \"2\"");
}
