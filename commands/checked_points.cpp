#include "commands/checked_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "commands/signals.hpp"

namespace stepcast {
namespace {

/// Keys of `noise` that do nothing beside the others.
std::vector<std::string> idle_noise(const Experiment& experiment) {
  const Noise& noise = experiment.noise;
  const bool drawn = noise.jitter == Noise::Jitter::lognormal || noise.jitter == Noise::Jitter::layers;
  const auto& workloads = experiment.plan.workloads;
  const bool replays = std::any_of(workloads.begin(), workloads.end(),
                                   [](const Workload& workload) { return workload.samples.size() > 1; });
  std::vector<std::string> idle;
  if (noise.jitter == Noise::Jitter::trace && !replays)
    idle.push_back("noise.jitter: trace has nothing to replay: the trace has one sample a pass");
  if (noise.sigma > 0 && !drawn)
    idle.push_back("noise.sigma does nothing: it is of noise.jitter: lognormal or layers");
  if (noise.sigma == 0 && drawn) idle.push_back("noise.jitter does nothing: noise.sigma is 0");
  if ((noise.straggler_share > 0) != (noise.straggler_factor > 1))
    idle.push_back("nobody is slow: noise.straggler_share and noise.straggler_factor need each other");
  return idle;
}

}  // namespace

CheckedPoints checked_points(const Scenario& scenario, const std::vector<std::size_t>& points,
                             Library& library) {
  CheckedPoints checked;
  Experiment& largest = checked.largest;
  std::vector<std::string> flags;           // each once
  std::map<std::string, std::size_t> idle;  // points of which it holds
  for (const std::size_t point : points) {
    SignalGuard::stop_if_interrupted();
    Experiment experiment =
        build_experiment(scenario.document, middle_values(scenario, scenario.points[point]), library);
    for (const std::string& flag : experiment.plan.flags) {
      const std::string line = "note on the trace: " + flag;
      if (std::find(flags.begin(), flags.end(), line) == flags.end()) flags.push_back(line);
    }
    for (const std::string& one : idle_noise(experiment)) ++idle[one];
    if (!experiment.plan.fits) {
      const std::string& name = scenario.points[point].name;
      checked.misfits.push_back(fmt::format("does not fit: {}: {}", name, experiment.plan.why_not));
    }
    if (experiment.plan.workers >= largest.plan.workers) largest = std::move(experiment);
  }
  for (const auto& [one, count] : idle) {
    if (count == points.size()) flags.push_back("note: " + one);
  }
  largest.plan.flags = std::move(flags);
  return checked;
}

}  // namespace stepcast
