#include "commands/run_files.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <fstream>

#include "commands/version.hpp"
#include "report/atomic_file.hpp"
#include "report/sha256.hpp"

namespace stepcast {
namespace {

/// The command line, one entry an argument.
std::vector<std::string> own_command() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  return arguments;
}

}  // namespace

std::filesystem::path folder_of(const Scenario& scenario, const RunOptions& options) {
  const std::filesystem::path name = scenario.name;
  if (options.output.empty()) return "results" / name;
  return options.scenarios.size() > 1 ? options.output / name : std::filesystem::path(options.output);
}

Manifest manifest_of(const Scenario& scenario, const Library& library) {
  Manifest manifest;
  manifest.version = kVersion;
  manifest.scenario = scenario.name;
  manifest.command = own_command();
  manifest.sweep = scenario.sweep_keys;
  manifest.inputs.push_back(hashed("scenario", scenario.file));
  for (const auto& [role, path] : library.files()) manifest.inputs.push_back(hashed(role, path));
  manifest.date =
      fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                  std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now()));
  return manifest;
}

std::filesystem::path journal_of(const std::filesystem::path& folder, const Manifest& manifest,
                                 const RunOptions& options) {
  std::string all = manifest.version + std::to_string(options.draws);
  for (const InputFile& input : manifest.inputs) all += input.path + input.sha256;
  for (const std::string& setting : options.settings) all += setting + "\n";
  const auto journal = folder / "simulations.jsonl";
  const auto mark = folder / "simulations.sha256";
  const std::string print = sha256(all);
  std::error_code error;
  const bool same = std::filesystem::exists(mark, error) && read_file(mark) == print + "\n";
  if (options.resume && !same && std::filesystem::exists(journal, error))
    fmt::print(stderr, "--resume: inputs or settings are not those of {}: it is begun anew\n",
               journal.string());
  if (!options.resume || !same) {
    std::filesystem::remove(journal, error);
    write_atomically(mark, print + "\n");
  }
  return journal;
}

}  // namespace stepcast
