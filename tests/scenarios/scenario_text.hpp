#pragma once

#include <fstream>
#include <string>

#include "core/error.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/scenario.hpp"
#include "tests/report/temporary_folder.hpp"

namespace stepcast {

/// Reads a scenario from YAML text, by way of a temporary file.
inline Scenario scenario_of(const std::string& text, const std::vector<std::string>& settings = {}) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "s.yaml";
  std::ofstream(file) << text;
  std::vector<Assignment> assignments;
  for (const std::string& setting : settings) assignments.push_back(parse_assignment(setting));
  try {
    return read_scenario(file, assignments);
  } catch (const InputError& error) {
    std::string message = error.what();  // without the folder, whose name is random
    if (message.starts_with(folder.path().string())) message.erase(0, folder.path().string().size() + 1);
    throw InputError(message);
  }
}

inline std::filesystem::path shipped_scenario(const std::string& name) {
  return std::string(STEPCAST_SOURCE_DIR) + "/scenarios/" + name + ".yaml";
}

/// The first point of a shipped scenario, with `settings` in place of its own values.
inline Experiment shipped_experiment(const std::string& name, const std::vector<std::string>& settings) {
  const Scenario scenario = read_scenario(shipped_scenario(name), {});
  std::vector<Assignment> values = scenario.points.front().values;
  for (const std::string& setting : settings) values.push_back(parse_assignment(setting));
  Library library;
  return build_experiment(scenario.document, values, library);
}

}  // namespace stepcast
