#include "scenarios/reader/link_names.hpp"

#include <fmt/format.h>
#include <fnmatch.h>

#include "core/text.hpp"

namespace stepcast {

std::vector<int> read_link_names(const YamlValue& pattern, const Topology& topology) {
  constexpr int kMostCompared = 20'000;  // names that are looked through for the nearest one
  std::vector<int> links;
  std::vector<std::string> names;
  for (int link = 0; link < topology.link_count(); ++link) {
    std::string name = topology.link_name(link);
    if (fnmatch(pattern.text().c_str(), name.c_str(), 0) == 0) links.push_back(link);
    if (link < kMostCompared) names.push_back(std::move(name));
  }
  if (!links.empty()) return links;
  const std::string nearest = nearest_word(pattern.text(), names);
  pattern.expected(fmt::format("names of links, such as \"{}\" (* stands for anything)",
                               nearest.empty() ? names.front() : nearest));
}

}  // namespace stepcast
