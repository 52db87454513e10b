#include "runtime/learning/learning_runs.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "core/os/atomic_file.hpp"
#include "kernels/network/layer_table.hpp"
#include "report/results/json_lines.hpp"
#include "runtime/learning/learner.hpp"
#include "runtime/runs/real_worker.hpp"
#include "runtime/scenario_points/frozen_algorithms.hpp"

namespace stepcast {
namespace {

/// The experiment of a point, with the number of steps that its learning takes.
Experiment learning_experiment(const RankContext& run, const Validation& validation, std::size_t index,
                               const Experiment& timed, Library& library) {
  return measured_experiment(validation, index, run.folder,
                             {parse_assignment(fmt::format("simulation.steps={}", learning_steps(timed)))},
                             library);
}

void learn(const LearningWorld& world, const Validation& validation, std::size_t index,
           const Experiment& experiment) {
  const RankContext& run = world.run;
  const Point& point = validation.scenario.points[validation.points[index]];
  set_status(run.state, fmt::format("{} (learning)", point.name).c_str());
  const int rank = run.transport.rank();
  Learner learner(experiment, world.backend,
                  {.rank = rank,
                   .batch = validation.variants[index].batch,
                   .data = learning_data(experiment),
                   .on_progress = [&run] { run.state.heartbeat.fetch_add(1); },
                   .compresses = validation.compresses[index],
                   .transport = &run.transport});
  const auto device = learner.device();
  RankCollectives collectives(
      experiment.plan, read_all_reduces(all_reduce_file(run.folder), point.name, experiment.plan), rank);
  RealWorld real{.plan = experiment.plan,
                 .transport = run.transport,
                 .collective_thread = world.collective_thread,
                 .messages = world.messages,
                 .device = *device,
                 .collectives = collectives,
                 .completions = world.completions,
                 .state = run.state,
                 .polling = &run.polling,
                 .library_all_reduce = run.library_all_reduce,
                 .device_payloads = world.device_payloads,
                 .on_step_end = [&learner](double seconds) { learner.step_ended(seconds); }};
  if (world.make_collective_backend) real.collective_backend = world.make_collective_backend(experiment.plan);
  run_program(real, ++world.last_run);
  std::vector<Row> rows;
  if (learner.holds_evaluated_parameters()) rows = learner.evaluate();
  if (rank == 0) {
    for (const Row& row : rows) {
      append_line(run.folder / "learning.jsonl",
                  to_json_line({validation.scenario.name, {}}, with_first("point", point.name, row)));
    }
    save_checkpoint(run.folder / fmt::format("point-{}.parameters", index + 1), experiment.model,
                    learner.final_parameters());
  }
  barrier(run.transport);
}

}  // namespace

std::string unsupported_learning(const Experiment& experiment) {
  if (std::string why = lacking_kernel(experiment.model); !why.empty()) return why;
  const std::string& key = experiment.plan.no_arithmetic;
  if (!key.empty()) return "strategy." + key + " is only timed in real runs, so no network can learn with it";
  make_data(experiment.learning->data, learning_task(experiment.model).form);
  if (experiment.learning->start) load_checkpoint(*experiment.learning->start, experiment.model);
  return {};
}

void learn_all(const LearningWorld& world, const Validation& validation, Library& library) {
  for (std::size_t i = 0; i < validation.points.size(); ++i) {
    const Experiment timed = measured_experiment(validation, i, world.run.folder, {}, library);
    if (!timed.learning) continue;
    learn(world, validation, i, learning_experiment(world.run, validation, i, timed, library));
  }
}

}  // namespace stepcast
