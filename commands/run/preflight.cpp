#include "commands/run/preflight.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.hpp"
#include "forecast/processes/process_pool.hpp"

namespace stepcast {
namespace {

/// True if the scenario or the point sets the key, alone or within a mapping.
bool sets_key(const Scenario& scenario, const std::vector<Assignment>& values, const std::string& key) {
  if (find_path(scenario.document, key) != nullptr) return true;
  return std::ranges::any_of(values, [&](const Assignment& one) {
    if (one.path == key) return true;
    return key.starts_with(one.path + ".") &&
           find_path(one.value, key.substr(one.path.size() + 1)) != nullptr;
  });
}

bool is_idle(const IneffectiveAtPoint& at, const std::string& key) {
  return std::ranges::any_of(at.keys, [&](const IneffectiveKey& one) { return one.key == key; });
}

}  // namespace

std::vector<std::string> idle_notes(const Scenario& scenario, const std::vector<IneffectiveAtPoint>& points) {
  std::set<std::string> keys, effective;
  for (const IneffectiveAtPoint& at : points) {
    for (const IneffectiveKey& one : at.keys) keys.insert(one.key);
  }
  for (const IneffectiveAtPoint& at : points) {
    if (at.one_device || effective.size() == keys.size()) continue;
    const auto values = middle_values(scenario, scenario.points[at.point]);
    for (const std::string& key : keys) {
      if (!is_idle(at, key) && sets_key(scenario, values, key)) effective.insert(key);
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
  std::vector<std::string> flags;  // without duplicates
  std::vector<IneffectiveAtPoint> idle;
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
      if (std::find(flags.begin(), flags.end(), line) == flags.end()) flags.push_back(line);
    }
    idle.push_back({point, experiment.plan.idle_keys, experiment.plan.devices == 1});
    if (!experiment.plan.fits) {
      const std::string& name = scenario.points[point].name;
      checked.misfits.push_back(fmt::format("does not fit: {}: {}", name, experiment.plan.why_not));
    }
    if (experiment.plan.workers >= largest.plan.workers) largest = std::move(experiment);
  }
  for (const std::string& one : idle_notes(scenario, idle)) flags.push_back("note: " + one);
  largest.plan.flags = std::move(flags);
  return checked;
}

}  // namespace stepcast
