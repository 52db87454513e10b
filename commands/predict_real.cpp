#include "commands/predict_real.hpp"

#include <fmt/format.h>

#include "commands/pool.hpp"
#include "commands/simulate_point.hpp"
#include "core/error.hpp"
#include "kernels/processor.hpp"
#include "models/trace_text.hpp"
#include "report/atomic_file.hpp"
#include "report/json_lines.hpp"
#include "report/results.hpp"
#include "scenarios/data_files.hpp"
#include "validate/learning_runs.hpp"
#include "validate/measured_links.hpp"
#include "validate/platform_text.hpp"
#include "validate/stage_trace.hpp"

namespace stepcast {
namespace {

Results measured_links(const std::filesystem::path& folder) {
  const auto file = folder / "links.jsonl";
  return read_json_lines(read_file(file), file.string());
}

void write_platform(const Results& links, const Cluster& cluster, const std::filesystem::path& folder) {
  MeasuredPlatform platform{"measured", "stepcast validate on " + processor_name(), cluster,
                            fitted_link_table(message_times(links, cluster))};
  // Links were measured by one thread; in a run another one is woken for each message, and wakes the program.
  platform.links.latency.value += sharing_of(links).hand_over;
  write_atomically(platform_file(folder), platform_text(platform));
}

/// Workers that start together drift apart until each finds the others' links free, by the jitter of their
/// steps, in hundreds of these.
void add_steady_state(std::vector<Assignment>& own) {
  own.push_back(parse_assignment("simulation.steps=1000"));
  own.push_back(parse_assignment("noise.jitter=trace"));
}

/// What is drawn anew in each step is drawn often enough for its mean.
void add_many_steps(std::vector<Assignment>& own) {
  own.push_back(parse_assignment("simulation.steps=500"));
}

/// Stages whose ranks compute: their messages cost the cores that compute.
Assignment stage_trace(const Experiment& experiment, const Results& links,
                       const std::filesystem::path& trace_file, std::size_t index, Library& library) {
  const Trace whole = library.trace(YamlValue(command_line_name(trace_file.string()), "trace"));
  const Trace with = with_messages(whole, experiment.model, experiment.plan.sharing,
                                   [&links](Bytes size) { return message_host_time(links, size); });
  const auto file =
      trace_file.parent_path() / fmt::format("{}-stages{}.yaml", trace_file.stem().string(), index + 1);
  write_atomically(file, to_yaml(with));
  return parse_assignment("trace=" + file.string());
}

/// What is simulated for a point.
struct Simulated {
  std::size_t point;
  Experiment experiment;
};

/// Workers without a common pace that share links: when they start decides how they meet, for hundreds of
/// steps, and the run that is made is one of many. So the forecast is the mean over starts; what is drawn
/// stays.
void add_with_other_starts(const Simulated& one, std::vector<Simulated>& all) {
  constexpr int kStarts = 12;
  const bool several = one.experiment.plan.asynchronous && one.experiment.noise.start_spread > 0;
  all.push_back(one);
  for (int i = 0; several && i < kStarts; ++i) {
    all.push_back(one);
    all.back().experiment.noise.start_spread *= 0.5 + (i + 0.5) / kStarts;
  }
}

Row row_of(const std::string& text, const std::string& point, StepStatistic statistic) {
  Row row = with_first("point", point, read_json_lines(text, "a simulation").rows.at(0));
  if (statistic == StepStatistic::mean) row.set("step_seconds", row.at("step_seconds_mean"));
  return row;
}

/// A row for each point: that of its own start, with the mean over all starts.
std::vector<Row> means_over_starts(const std::vector<Simulated>& simulated, const std::vector<Row>& rows) {
  std::vector<Row> points;
  for (std::size_t begin = 0, end = 0; begin < rows.size(); begin = end) {
    double sum = 0;
    for (; end < rows.size() && simulated[end].point == simulated[begin].point; ++end)
      sum += rows[end].number("step_seconds").value_or(0);
    points.push_back(rows[begin]);
    points.back().set("step_seconds", sum / static_cast<double>(end - begin));
  }
  return points;
}

std::string why_not(const Experiment& experiment, const ValidationOptions& options, int ranks) {
  std::string why = why_not_for_real(experiment.plan, ranks, options.sleep);
  if (why.empty()) why = why_not_drawn(experiment.noise, options.sleep);
  if (!why.empty() || !experiment.learning) return why;
  if (options.sleep) return "learning: ranks that sleep learn nothing; leave --sleep out";
  return why_not_learned(experiment);
}

}  // namespace

Results predict_real(const Validation& validation, const ValidationOptions& options, const Cluster& cluster,
                     const std::filesystem::path& folder, const std::function<void()>& meanwhile) {
  double slowdown = 1;  // ranks that sleep leave the cores to communication; ranks on GPUs are not measured
  const bool on_gpus = std::filesystem::exists(platform_file(folder));  // whose ranks wrote it
  const Results links = on_gpus ? Results{} : measured_links(folder);
  if (!on_gpus) {
    write_platform(links, cluster, folder);
    if (!options.sleep) slowdown = sharing_of(links).compute_slowdown;
  }
  const std::vector<Assignment> more{parse_assignment("strategy.compute_slowdown=" + shortest(slowdown))};
  Library library;
  std::vector<Simulated> simulated;
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    auto own = more;
    const auto forecast = [&] { return measured_experiment(validation, i, folder, own, library); };
    Experiment one = forecast();
    const bool stages = one.plan.sharing.form == NetworkSharing::Form::stages;
    if (!on_gpus && !options.sleep && stages)
      own.push_back(stage_trace(one, links, trace_file(folder, validation.needs[i]), i, library));
    // What ranks that sleep draw, real ones draw too: the run that is made is forecast, not the mean of many.
    if (!options.sleep && one.plan.asynchronous) {
      add_steady_state(own);
    } else if (!options.sleep && one.noise.jitter != Noise::Jitter::none) {
      add_many_steps(own);
    }
    if (own.size() > more.size()) one = forecast();
    const std::string why = why_not(one, options, cluster.ranks);
    const std::string& name = validation.scenario.points[validation.points[i]].name;
    if (!why.empty())
      throw InputError(fmt::format("{}: point {} cannot be run for real: {}", options.scenario, name, why));
    add_with_other_starts({i, std::move(one)}, simulated);
  }
  std::vector<Task> tasks;
  for (const Simulated& one : simulated) {
    tasks.push_back([&one] {
      return to_json_line({"prediction", {}}, simulate_point(one.experiment, Doubled::none));
    });
  }
  std::vector<Row> rows(tasks.size());
  run_tasks(
      tasks, 2,
      [&](std::size_t i, const std::string& text) {
        const std::size_t point = validation.points[simulated[i].point];
        rows[i] = row_of(text, validation.scenario.points[point].name, step_statistic(options));
      },
      meanwhile);
  return {validation.scenario.name, means_over_starts(simulated, rows)};
}

}  // namespace stepcast
