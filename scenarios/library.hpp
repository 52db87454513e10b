#pragma once

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "models/compression.hpp"
#include "models/derive.hpp"
#include "models/library.hpp"
#include "models/model.hpp"
#include "models/trace.hpp"
#include "scenarios/assignment.hpp"

namespace stepcast {

/// Files read once and shared by all points of a sweep; children of fork() inherit them.
class Library {
 public:
  /// The tree of a file; `name` as in data_file.
  const YamlNode& tree(const YamlValue& name, const std::string& folder);
  const Model& model(const YamlValue& name);
  const Trace& trace(const YamlValue& name);
  const Device& device(const YamlValue& name);
  const Device& device(const std::string& name);
  const Calibration& calibration(const Device& device);
  /// None named: of this project's own CPU.
  const CompressionTrace& compression(const std::optional<YamlValue>& name = {});

  /// (role, path) of every file read so far.
  const std::set<std::pair<std::string, std::string>>& files() const { return files_; }

 private:
  void note_file(const std::string& role, const std::string& folder, const std::string& name);

  std::map<std::string, std::unique_ptr<YamlNode>> trees_;
  std::map<std::string, std::unique_ptr<Model>> models_;
  std::map<std::string, std::unique_ptr<Trace>> traces_;
  std::map<std::string, std::unique_ptr<Device>> devices_;
  std::map<std::string, std::unique_ptr<Calibration>> calibrations_;
  std::map<std::string, std::unique_ptr<CompressionTrace>> compressions_;
  std::set<std::pair<std::string, std::string>> files_;
};

}  // namespace stepcast
