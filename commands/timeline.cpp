#include "commands/timeline.hpp"

#include <fmt/format.h>

#include "commands/pool.hpp"
#include "core/error.hpp"
#include "core/nearest.hpp"
#include "report/chrome_trace.hpp"

namespace stepcast {

std::size_t timeline_point(const Scenario& scenario, const std::string& name) {
  std::vector<std::string> names;
  for (const Point& point : scenario.points) {
    if (point.name == name) return names.size();
    names.push_back(point.name);
  }
  const std::string nearest = nearest_word(name, names);
  throw InputError(fmt::format("--timeline: there is no point \"{}\"; did you mean \"{}\"?", name,
                               nearest.empty() ? names.front() : nearest));
}

void write_timeline(const Scenario& scenario, Library& library, const std::vector<Assignment>& values,
                    const std::filesystem::path& file) {
  const Task task = [&] {
    constexpr int kMostTracks = 64;
    Experiment experiment = build_experiment(scenario.document, values, library);
    experiment.fold = experiment.plan.workers <= kMostTracks ? Folding::never : Folding::always;
    Timeline timeline;
    simulate_point(experiment, Doubled::none, &timeline);
    write_chrome_trace(file, timeline);
    return std::string();
  };
  run_tasks({task}, 1, [](std::size_t, const std::string&) {});
}

}  // namespace stepcast
