#include <algorithm>

#include "core/error.hpp"
#include "tests/drawn/case_check.hpp"
#include "tests/drawn/yaml_text.hpp"

namespace stepcast::drawn {
namespace {

constexpr int kMostTries = 150;

bool breaks(const YamlNode& scenario, const Law& law, const std::string& broken) {
  try {
    Trial trial(scenario);
    return std::ranges::any_of(findings_of(law, trial),
                               [&](const Finding& one) { return one.law == broken && one.broken(); });
  } catch (const std::exception&) {
    return false;  // refused
  }
}

/// Removes keys and entries below `node`, a part of `scenario`, while the scenario breaks the law.
class Minimizer {
 public:
  Minimizer(YamlNode& scenario, const Law& law, const std::string& broken)
      : scenario_(scenario), law_(law), broken_(broken) {}

  void run() {
    halve_workers();
    shorten(scenario_);
  }

 private:
  bool still_breaks() { return tries_++ < kMostTries && breaks(scenario_, law_, broken_); }

  /// Keys of the file, without which `stepcast run` would not show the same.
  static bool is_kept(const std::pair<YamlNode, YamlNode>& entry) {
    return entry.first.text == "name" || entry.first.text == "uncertainty";
  }
  static bool is_kept(const YamlNode& /*item*/) { return false; }

  template <class Entries>
  void shorten_list(Entries& entries) {
    for (std::size_t i = entries.size(); i-- > 0;) {
      const auto removed = entries[i];
      if (is_kept(removed)) continue;
      entries.erase(entries.begin() + i);
      if (!still_breaks()) entries.insert(entries.begin() + i, removed);
    }
  }

  void shorten(YamlNode& node) {
    shorten_list(node.entries);
    for (auto& entry : node.entries) shorten(entry.second);
    if (node.items.size() > 1) shorten_list(node.items);
  }

  void halve_workers() {
    const auto workers = std::ranges::find_if(
        scenario_.entries, [](const auto& entry) { return entry.first.text == "workers"; });
    while (std::stoi(workers->second.text) > 2) {
      const std::string before = workers->second.text;
      workers->second.text = std::to_string(std::stoi(before) / 2);
      if (still_breaks()) continue;
      workers->second.text = before;
      return;
    }
  }

  YamlNode& scenario_;
  const Law& law_;
  const std::string& broken_;
  int tries_ = 0;
};

}  // namespace

YamlNode minimized(YamlNode scenario, const Law& law, const std::string& broken) {
  Minimizer(scenario, law, broken).run();
  return scenario;
}

}  // namespace stepcast::drawn
