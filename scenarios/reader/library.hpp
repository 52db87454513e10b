#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "core/yaml.hpp"
#include "models/layer_times/compression_times.hpp"
#include "models/layer_times/derived_trace.hpp"
#include "models/layer_times/trace.hpp"
#include "models/loader.hpp"
#include "models/network/model.hpp"
#include "platforms/platform.hpp"
#include "scenarios/reader/sweep.hpp"

namespace stepcast {

/// Folder that holds models/, platforms/ and scenarios/: the environment variable STEPCAST_DATA, else
/// ../share/stepcast beside an installed program, else where stepcast was built.
std::filesystem::path data_folder();

/// The file that a scenario refers to by `name`. A path that ends in .yaml is relative to the folder of the
/// scenario, or to the current folder if it comes from the command line. A plain name is FOLDER/NAME.yaml in
/// the data folder; networks may also stand in models/library/FAMILY/.
/// @throws InputError with the nearest existing name
std::filesystem::path data_file(const YamlValue& name, const std::string& folder);

/// The file of a scenario on the command line: a path, "-", or the name of a file NAME.yaml in scenarios/ of
/// the data folder, such as quickstart or published/NAME, or its path in the sources,
/// scenarios/NAME.yaml, if no such file is there. What is no such name is returned as it is.
std::string scenario_file(const std::string& name);

/// @throws InputError with the nearest existing name for what is neither a path nor a name of a scenario
void check_scenario_file(const std::filesystem::path& file);

/// A name from the command line as a YAML value. Paths are relative to the current folder.
YamlNode command_line_name(const std::string& name);

/// Input files, read once and shared by all points of a sweep. Child processes inherit them by fork().
class Library {
 public:
  /// The YAML tree of a file. `name` is resolved by data_file.
  const YamlNode& tree(const YamlValue& name, const std::string& folder);
  const Model& model(const YamlValue& name);
  const Trace& trace(const YamlValue& name);
  const Device& device(const YamlValue& name);
  const Device& device(const std::string& name);
  const Calibration& calibration(const Device& device);
  /// The platform of a tree, with what the file of its device says.
  Platform platform(const YamlValue& tree);
  /// Times of compression kernels. @param name  default: the measured file `cpu`
  const CompressionTrace& compression(const std::optional<YamlValue>& name = {});

  /// Role and path of every file read so far.
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
