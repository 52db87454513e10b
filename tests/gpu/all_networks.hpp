#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "scenarios/reader/library.hpp"

namespace stepcast::test {

/// The files of all shipped networks, also those of libraries, in the order of their names.
inline std::vector<std::string> network_names() {
  std::vector<std::string> names;
  for (const auto& one : std::filesystem::recursive_directory_iterator(data_folder() / "models")) {
    const std::filesystem::path folder = one.path().parent_path();
    const bool network = folder.filename() == "models" || folder.parent_path().filename() == "library";
    if (network && one.path().extension() == ".yaml") names.push_back(one.path().string());
  }
  std::ranges::sort(names);
  return names;
}

}  // namespace stepcast::test
