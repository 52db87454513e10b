#include "commands/run/checked_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "commands/search_space/possible_layouts.hpp"
#include "core/error.hpp"
#include "core/os/process.hpp"

namespace stepcast {
namespace {

/// A line with the keys that would let a point fit into memory.
std::string fitting_note(const Scenario& scenario, std::size_t point, const Experiment& experiment,
                         Library& library) {
  const Point& at = scenario.points[point];
  const auto keys = fitting_keys(scenario.document, middle_values(scenario, at), experiment, library);
  if (keys.empty()) {
    const std::string layout =
        fitting_layout(scenario.document, middle_values(scenario, at), experiment, library);
    if (!layout.empty())
      return fmt::format("note: {} would fit with strategy: {}; search --layouts compares all that do",
                         at.name, layout);
    return fmt::format("note: {}: no changes that were tried make it fit", at.name);
  }
  return fmt::format("note: {} would fit with {}", at.name, fmt::join(keys, "; or with "));
}

/// True if the scenario or the point sets the key, alone or within a mapping.
bool sets_key(const Scenario& scenario, const std::vector<Assignment>& values, const std::string& key) {
  if (find_path(scenario.document, key) != nullptr) return true;
  return std::ranges::any_of(values, [&](const Assignment& one) {
    if (one.path == key) return true;
    return key.starts_with(one.path + ".") &&
           find_path(one.value, key.substr(one.path.size() + 1)) != nullptr;
  });
}

bool is_ineffective(const IneffectiveAtPoint& at, const std::string& key) {
  return std::ranges::any_of(at.keys, [&](const IneffectiveKey& one) { return one.key == key; });
}

}  // namespace

std::vector<std::string> ineffective_notes(const Scenario& scenario,
                                           const std::vector<IneffectiveAtPoint>& points) {
  std::set<std::string> keys, effective;
  for (const IneffectiveAtPoint& at : points) {
    for (const IneffectiveKey& one : at.keys) keys.insert(one.key);
  }
  for (const IneffectiveAtPoint& at : points) {
    if (at.one_device || effective.size() == keys.size()) continue;
    const auto values = middle_values(scenario, scenario.points[at.point]);
    for (const std::string& key : keys) {
      if (!is_ineffective(at, key) && sets_key(scenario, values, key)) effective.insert(key);
    }
  }
  std::vector<std::string> notes;
  for (const IneffectiveAtPoint& at : points) {
    for (const IneffectiveKey& one : at.keys) {
      const std::string note = to_string(one);
      if (!effective.contains(one.key) && std::ranges::find(notes, note) == notes.end())
        notes.push_back(note);
    }
  }
  return notes;
}

CheckedPoints checked_points(const Scenario& scenario, const std::vector<std::size_t>& points,
                             Library& library, bool part) {
  CheckedPoints checked;
  Experiment& largest = checked.largest;
  std::vector<std::string>& notes = checked.notes;
  std::vector<IneffectiveAtPoint> ineffective;
  for (const std::size_t point : points) {
    SignalGuard::stop_if_interrupted();
    Experiment experiment;
    try {
      experiment =
          build_experiment(scenario.document, middle_values(scenario, scenario.points[point]), library);
    } catch (const InputError& error) {
      checked.failed[point] = error.what();
      if (!part && checked.failed.size() == points.size()) throw InputError(checked.failed.begin()->second);
      continue;
    }
    for (const std::string& flag : experiment.plan.flags) {
      const std::string line = "note on the trace: " + flag;
      if (std::ranges::find(notes, line) == notes.end()) notes.push_back(line);
    }
    ineffective.push_back({point, experiment.plan.ineffective_keys, experiment.plan.devices == 1});
    if (!experiment.plan.fits) {
      const std::string& name = scenario.points[point].name;
      checked.misfits.push_back(fmt::format("does not fit: {}: {}", name, experiment.plan.why_not));
      if (checked.misfits.size() == 1) notes.push_back(fitting_note(scenario, point, experiment, library));
    }
    if (experiment.plan.workers >= largest.plan.workers) largest = std::move(experiment);
  }
  for (const std::string& one : ineffective_notes(scenario, ineffective)) notes.push_back("note: " + one);
  return checked;
}

}  // namespace stepcast
