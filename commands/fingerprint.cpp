#include "commands/fingerprint.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "core/os/files.hpp"
#include "scenarios/reader/scenario_documents.hpp"

namespace stepcast {

std::vector<InputFile> input_files(const Scenario& scenario, const Library& library) {
  std::vector<InputFile> inputs{hashed("scenario", file_of(scenario.file))};
  inputs.front().path = scenario.file.string();  // one of the file's scenarios
  for (const auto& file : files_of_defaults(scenario.file, scenario.defaults))
    inputs.push_back(hashed("defaults", file));
  for (const auto& [role, path] : library.files()) inputs.push_back(hashed(role, path));
  return inputs;
}

const std::string& build_id() {
  static const std::string id = sha256(read_file("/proc/self/exe"));
  return id;
}

std::string fingerprint_of(const std::vector<InputFile>& inputs, const std::vector<std::string>& texts) {
  std::string all = build_id();
  for (const InputFile& input : inputs) all += input.path + input.sha256;
  for (const std::string& text : texts) all += "\n" + text;
  return sha256(all);
}

bool may_resume(const std::filesystem::path& file, const std::string& fingerprint, bool resume) {
  std::error_code error;
  if (!resume || !std::filesystem::exists(file, error)) return false;
  if (read_file(file) == fingerprint + "\n") return true;
  fmt::print(stderr,
             "--resume: the inputs, the settings or the build of stepcast differ from those of {}; starting "
             "from scratch\n",
             file.parent_path().string());
  return false;
}

void write_fingerprint(const std::filesystem::path& file, const std::string& fingerprint) {
  write_atomically(file, fingerprint + "\n");
}

}  // namespace stepcast
