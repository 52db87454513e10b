#pragma once

#include <filesystem>
#include <vector>

#include "core/yaml.hpp"

namespace stepcast {

/// A scenario's tree after its `defaults:`, and the files that it names, the nearest first.
struct InheritedScenario {
  YamlNode root;
  std::vector<std::filesystem::path> defaults;
};

/// Reads a scenario file. Where it has `defaults: OTHER.yaml`, the keys of that scenario are taken over,
/// except those that this file gives or removes (`null`). Mappings are merged key by key, unless both have a
/// `kind` and the kinds differ; `sweep` and lists are replaced as a whole. Paths are relative to the file
/// that they stand in.
/// @throws InputError for a file that inherits from itself, or from more than 8 files one after the other
InheritedScenario read_with_defaults(const std::filesystem::path& file);

}  // namespace stepcast
