#pragma once

#include <string>
#include <vector>

#include "core/keys.hpp"

namespace stepcast {

/// A kind of input file, with the table of its keys.
struct FileKind {
  std::string name;  ///< "scenario", "platform" ...
  Keys keys;         ///< of the top level, `version` included
  Required required = Required::all;
};

const std::vector<FileKind>& file_kinds();

/// The kind whose table has the most keys of this file's top level.
const FileKind& kind_of(const YamlNode& root);

/// The table at a path below the top of a file: "" or "noise" or "messages.between_nodes". After "@", only
/// the keys of one kind of mapping: "network@torus", "strategy@bmuf". @throws InputError for an unknown path
Keys table_at(const FileKind& file, const std::string& path);

}  // namespace stepcast
