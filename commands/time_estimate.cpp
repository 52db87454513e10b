#include "commands/time_estimate.hpp"

#include <fmt/format.h>
#include <sys/resource.h>

#include "commands/calibrate_draw.hpp"
#include "commands/forecast.hpp"
#include "commands/pool.hpp"
#include "commands/simulate_point.hpp"
#include "report/human.hpp"

namespace stepcast {
namespace {

constexpr std::size_t kTried = 8;  ///< points, of however many

/// Processor time of all children so far.
double children_seconds() {
  rusage used{};
  getrusage(RUSAGE_CHILDREN, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

/// The first, the last, and some between them.
std::vector<std::size_t> tried_points(const std::vector<std::size_t>& points) {
  if (points.size() <= kTried) return points;
  std::vector<std::size_t> tried;
  for (std::size_t i = 0; i < kTried; ++i) tried.push_back(points[i * (points.size() - 1) / (kTried - 1)]);
  return tried;
}

}  // namespace

Seconds estimated_time(const Scenario& scenario, const std::vector<std::size_t>& points, Library& library,
                       int draws, double simulations) {
  const std::vector<double> middle(scenario.assumptions.size(), 0.5);
  const double begun = children_seconds();
  const std::vector<double> calibrated = calibrated_draw(scenario, middle, library).values;
  const double after_calibration = children_seconds();
  const std::vector<std::size_t> tried = tried_points(points);
  std::vector<Task> tasks;
  for (const std::size_t point : tried) {
    tasks.push_back([&, point] {
      const auto values = values_of(scenario, scenario.points[point].values, middle, calibrated);
      simulate_point(build_experiment(scenario.document, values, library), Doubled::none);
      return std::string();
    });
  }
  run_tasks(tasks, 1, [](std::size_t, const std::string&) {});
  const double a_point = (children_seconds() - after_calibration) / static_cast<double>(tried.size());
  return {draws * (after_calibration - begun) + simulations * a_point};
}

std::string time_text(Seconds processor_time, int processes) {
  return fmt::format("some {} of processor time, {} with {} process{}", human(processor_time),
                     human((1.0 / processes) * processor_time), processes, processes == 1 ? "" : "es");
}

}  // namespace stepcast
