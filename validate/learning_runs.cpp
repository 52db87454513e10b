#include "validate/learning_runs.hpp"

#include <fmt/format.h>

#include "core/error.hpp"
#include "report/atomic_file.hpp"
#include "report/json_lines.hpp"
#include "validate/learner.hpp"
#include "validate/run_program.hpp"

namespace stepcast {
namespace {

/// The point again with as many steps as its learning takes.
Experiment learning_experiment(const RankRun& run, const Validation& validation, std::size_t index,
                               const Experiment& timed, Library& library) {
  return measured_experiment(validation, index, run.folder,
                             {parse_assignment(fmt::format("simulation.steps={}", learning_steps(timed)))},
                             library);
}

void learn(const LearningWorld& world, const Validation& validation, std::size_t index,
           const Experiment& experiment) {
  const RankRun& run = world.run;
  const Point& point = validation.scenario.points[validation.points[index]];
  say(run.state, fmt::format("{} (learning)", point.name).c_str());
  const int rank = run.transport.rank();
  Learner learner(experiment, world.backend,
                  {rank, validation.needs[index].batch, learning_data(experiment),
                   [&run] { run.state.beat.fetch_add(1); }, validation.compresses[index], &run.transport});
  const auto device = learner.device();
  RealCollectives collectives(experiment.plan, link_table_of(experiment.platform, experiment.plan.endpoints),
                              run.transport.rank());
  RealWorld real{experiment.plan,       run.transport,     world.thread, world.mail,   *device,
                 collectives,           world.completions, run.state,    &run.leisure, 0,
                 run.library_all_reduce};
  if (world.carry) real.carry = world.carry(experiment.plan);
  real.parcels = world.parcels;
  real.step_ended = [&learner](double seconds) { learner.step_ended(seconds); };
  run_program(real, ++world.runs);
  std::vector<Row> rows;
  if (learner.has_rows()) rows = learner.rows();
  if (rank == 0) {
    for (const Row& row : rows) {
      append_line(run.folder / "learning.jsonl",
                  to_json_line({validation.scenario.name, {}}, with_first("point", point.name, row)));
    }
    save_checkpoint(run.folder / fmt::format("point-{}.parameters", index + 1), experiment.model,
                    learner.last());
  }
  barrier(run.transport);
}

}  // namespace

std::string why_not_learned(const Experiment& experiment) {
  const std::string& key = experiment.plan.no_arithmetic;
  if (!key.empty()) return "strategy." + key + " is not calculated for real, only timed";
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
