#include "commands/checked_points.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "commands/idle_notes.hpp"
#include "commands/signals.hpp"

namespace stepcast {

CheckedPoints checked_points(const Scenario& scenario, const std::vector<std::size_t>& points,
                             Library& library) {
  CheckedPoints checked;
  Experiment& largest = checked.largest;
  std::vector<std::string> flags;  // each once
  std::vector<IdleAtPoint> idle;
  for (const std::size_t point : points) {
    SignalGuard::stop_if_interrupted();
    Experiment experiment =
        build_experiment(scenario.document, middle_values(scenario, scenario.points[point]), library);
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
