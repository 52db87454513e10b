#include "commands/learn/training_store.hpp"

#include "commands/fingerprint.hpp"
#include "core/os/atomic_file.hpp"

namespace stepcast {

TrainingStore::TrainingStore(const std::filesystem::path& folder, const std::string& fingerprint, bool resume)
    : folder_(folder / "trainings") {
  const std::filesystem::path of_inputs = folder_ / "inputs.sha256";
  if (resume && holds_fingerprint(of_inputs, fingerprint)) return;
  std::error_code error;
  if (std::filesystem::exists(of_inputs, error)) std::filesystem::remove_all(folder_, error);
  std::filesystem::create_directories(folder_, error);
  write_fingerprint(of_inputs, fingerprint);
}

std::optional<std::string> TrainingStore::known(const std::string& name) const {
  std::error_code error;
  if (folder_.empty() || !std::filesystem::exists(file_of(name), error)) return std::nullopt;
  return read_file(file_of(name));
}

void TrainingStore::add(const std::string& name, const std::string& lines) const {
  if (!folder_.empty()) write_atomically(file_of(name), lines);
}

}  // namespace stepcast
