#include "scenarios/reader/library.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <filesystem>
#include <fstream>

using namespace stepcast;

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
