#pragma once

#include <filesystem>
#include <optional>
#include <string>

namespace stepcast {

/// The finished trainings of a folder, one file each, so that an interrupted `learn` goes on where it
/// stopped. They belong to a fingerprint of all inputs; with another one, or without `resume`, the store
/// begins empty.
class TrainingStore {
 public:
  TrainingStore() = default;  ///< keeps nothing
  TrainingStore(const std::filesystem::path& folder, const std::string& fingerprint, bool resume);

  /// The JSON lines of a training, if it is finished. @param name  part of a file name
  std::optional<std::string> known(const std::string& name) const;
  void add(const std::string& name, const std::string& lines) const;

 private:
  std::filesystem::path file_of(const std::string& name) const { return folder_ / (name + ".jsonl"); }

  std::filesystem::path folder_;  ///< empty: keeps nothing
};

}  // namespace stepcast
