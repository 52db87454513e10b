#include "commands/run/timeline.hpp"

#include <fmt/format.h>

#include <set>

#include "core/error.hpp"
#include "core/os/files.hpp"
#include "core/text.hpp"
#include "forecast/processes/process_pool.hpp"
#include "forecast/simulate_point.hpp"
#include "report/timeline/chrome_trace.hpp"
#include "sim/simulation.hpp"

namespace stepcast {

std::size_t point_of(const Scenario& scenario, const std::string& option, const std::string& name) {
  std::vector<std::string> names;
  for (const Point& point : scenario.points) {
    if (point.name == name) return names.size();
    names.push_back(point.name);
  }
  const std::string nearest = nearest_word(name, names);
  throw InputError(fmt::format("{}: there is no point \"{}\"; did you mean \"{}\"?", option, name,
                               nearest.empty() ? names.front() : nearest));
}

namespace {

constexpr int kDefaultRanks = 8, kMostUnfolded = 4096;

std::vector<int> default_ranks(const Plan& plan) {
  const int count = plan.endpoints.size();
  std::set<int> ranks;
  if (count > kDefaultRanks) {
    for (const Role& role : plan.roles) {
      if (ranks.size() < kDefaultRanks) ranks.insert(role.first_rank.value);
    }
  }
  for (int rank = 0; rank < count && ranks.size() < kDefaultRanks; ++rank) ranks.insert(rank);
  return {ranks.begin(), ranks.end()};
}

}  // namespace

std::vector<int> timeline_ranks(const Plan& plan, const std::string& text) {
  const int count = plan.endpoints.size();
  if (text.empty()) return default_ranks(plan);
  std::set<int> ranks;
  if (text == "all") {
    for (int rank = 0; rank < count; ++rank) ranks.insert(rank);
    return {ranks.begin(), ranks.end()};
  }
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const auto dash = part.find('-');
    const auto first = parse_integer(part.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_integer(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= count) {
      throw InputError(fmt::format(
          "--timeline-ranks: expected ranks below {}, such as 0,8-15, or all; got \"{}\"", count, text));
    }
    for (auto rank = *first; rank <= *last; ++rank) ranks.insert(rank);
  }
  return {ranks.begin(), ranks.end()};
}

void check_timeline(const Scenario& scenario, const RunOptions& options, Library& library) {
  if (options.timeline.empty()) {
    if (options.timeline_ranks.empty() && !options.timeline_per_rank) return;
    throw InputError("--timeline-ranks and --timeline-per-rank need --timeline POINT");
  }
  const Point& point = scenario.points[point_of(scenario, "--timeline", options.timeline)];
  if (!options.timeline_ranks.empty())
    timeline_ranks(build_experiment(scenario.document, point.values, library).plan, options.timeline_ranks);
}

void write_timeline(const Scenario& scenario, Library& library, const std::vector<Assignment>& values,
                    const RunOptions& options, const std::filesystem::path& file) {
  const Task task = [&] {
    Experiment experiment = build_experiment(scenario.document, values, library);
    if (experiment.plan.endpoints.size() <= kMostUnfolded) experiment.fold = Folding::never;
    Simulation simulation = simulation_of(experiment);
    simulation.timeline_ranks = timeline_ranks(experiment.plan, options.timeline_ranks);
    const Timeline timeline = simulate(simulation).timeline;
    try {
      if (options.timeline_per_rank) {
        write_chrome_traces(file, timeline);
      } else {
        write_chrome_trace(file, timeline);
      }
    } catch (const DiskFull& full) {  // the parent goes on without this file
      return std::string(full.what());
    }
    return std::string();
  };
  run_tasks({task}, 1, [](std::size_t, const std::string& full) {
    if (!full.empty()) throw DiskFull(full);
  });
}

}  // namespace stepcast
