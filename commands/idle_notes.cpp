#include "commands/idle_notes.hpp"

#include <algorithm>
#include <set>

namespace stepcast {
namespace {

/// Whether a point gives the key, itself or within a mapping.
bool gives(const Scenario& scenario, const std::vector<Assignment>& values, const std::string& key) {
  if (find_path(scenario.document, key) != nullptr) return true;
  return std::ranges::any_of(values, [&](const Assignment& one) {
    if (one.path == key) return true;
    return key.starts_with(one.path + ".") &&
           find_path(one.value, key.substr(one.path.size() + 1)) != nullptr;
  });
}

bool is_idle(const IdleAtPoint& at, const std::string& key) {
  return std::ranges::any_of(at.keys, [&](const IdleKey& one) { return one.key == key; });
}

}  // namespace

std::vector<std::string> idle_notes(const Scenario& scenario, const std::vector<IdleAtPoint>& points) {
  std::set<std::string> keys, works;
  for (const IdleAtPoint& at : points) {
    for (const IdleKey& one : at.keys) keys.insert(one.key);
  }
  for (const IdleAtPoint& at : points) {
    if (at.one_device || works.size() == keys.size()) continue;
    const auto values = middle_values(scenario, scenario.points[at.point]);
    for (const std::string& key : keys) {
      if (!is_idle(at, key) && gives(scenario, values, key)) works.insert(key);
    }
  }
  std::vector<std::string> notes;
  for (const IdleAtPoint& at : points) {
    for (const IdleKey& one : at.keys) {
      const std::string note = to_string(one);
      if (!works.contains(one.key) && std::ranges::find(notes, note) == notes.end()) notes.push_back(note);
    }
  }
  return notes;
}

}  // namespace stepcast
