#include "commands/fingerprint.hpp"

#include "commands/commands.hpp"
#include "core/os/files.hpp"

namespace stepcast {

std::vector<InputFile> input_files(const Scenario& scenario, const Library& library) {
  std::vector<InputFile> inputs{hashed("scenario", scenario.file)};
  for (const std::filesystem::path& file : scenario.defaults) inputs.push_back(hashed("defaults", file));
  for (const auto& [role, path] : library.files()) inputs.push_back(hashed(role, path));
  return inputs;
}

std::string fingerprint_of(const std::vector<InputFile>& inputs, const std::vector<std::string>& texts) {
  std::string all = kVersion;
  for (const InputFile& input : inputs) all += input.path + input.sha256;
  for (const std::string& text : texts) all += "\n" + text;
  return sha256(all);
}

bool holds_fingerprint(const std::filesystem::path& file, const std::string& fingerprint) {
  std::error_code error;
  return std::filesystem::exists(file, error) && read_file(file) == fingerprint + "\n";
}

void write_fingerprint(const std::filesystem::path& file, const std::string& fingerprint) {
  write_atomically(file, fingerprint + "\n");
}

}  // namespace stepcast
