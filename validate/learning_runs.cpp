#include "validate/learning_runs.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/error.hpp"
#include "report/atomic_file.hpp"
#include "report/json_lines.hpp"
#include "validate/held_out.hpp"
#include "validate/real_worker.hpp"

namespace stepcast {
namespace {

struct Snapshot {
  std::int64_t mini_batches = 0;  ///< of this worker
  double seconds = 0;
  std::vector<float> values;  ///< of all parameters, as they lie in memory
};

/// Mini-batches of a worker in what its program calls a step: those of a block.
std::int64_t mini_batches_a_step(const Plan& plan) {
  const double all = static_cast<double>(plan.batch_per_worker) * plan.workers;
  return std::max<std::int64_t>(1, std::llround(plan.samples_a_step / all));
}

/// The network of one point on this rank, and its data.
class Learner {
 public:
  Learner(const RankRun& run, const Experiment& experiment, std::int64_t batch)
      : run_(run),
        experiment_(experiment),
        task_(learning_task(experiment.model)),
        data_(make_data(experiment.learning->data, task_.form)),
        network_(*backend_, experiment.model,
                 {.batch = batch,
                  .data_seed = static_cast<std::uint64_t>(1 + run.transport.rank()),
                  .optimizer = experiment.learning->optimizer}),
        batches_(*data_.train, task_.form,
                 {.worker = std::min(run.transport.rank(), experiment.plan.workers - 1),
                  .workers = experiment.plan.workers,
                  .batch = batch}) {
    if (experiment.learning->start) start_ = load_checkpoint(*experiment.learning->start, experiment.model);
    if (run.transport.rank() < experiment.plan.workers)
      batches_.prepare(experiment.learning->mini_batches * experiment.plan.batch_per_worker / batch,
                       [this] { run_.state.beat.fetch_add(1); });
  }

  DeviceLearning learning() {
    DeviceLearning learning;
    learning.rate = experiment_.learning->rate;
    learning.summed = experiment_.plan.summed_gradients;
    learning.owned = scattered_parts(experiment_.plan, run_.transport.rank(), ArrayMap(network_));
    learning.next_batch = [this] {
      const Batches::Batch& batch = batches_.next();
      network_.input().write(batch.inputs);
      network_.kernel(task_.loss_layer).targets()->write(batch.targets);
    };
    learning.start = [this](Network& network) {
      if (!start_.empty()) write_parameters(network, start_);
      take_snapshot(0, 0);
    };
    return learning;
  }

  Network& network() { return network_; }

  void take_snapshot(std::int64_t mini_batches, double seconds) {
    const ParameterView& all = network_.all_parameters();
    snapshots_.push_back({mini_batches, seconds, {all.value, all.value + all.elements}});
  }

  /// Rank 0: a row for each snapshot.
  std::vector<Row> rows() {
    const std::int64_t samples = std::min(experiment_.learning->data.test_samples, data_.test->samples());
    HeldOut held_out(*backend_, experiment_.model, task_, *data_.test, samples);
    const double samples_a_mini_batch =
        static_cast<double>(experiment_.plan.batch_per_worker) * experiment_.plan.workers;
    std::vector<Row> rows;
    for (const Snapshot& snapshot : snapshots_) {
      std::copy(snapshot.values.begin(), snapshot.values.end(), network_.all_parameters().value);
      last_ = read_parameters(network_);
      const Score score = held_out.score(last_, [this] { run_.state.beat.fetch_add(1); });
      Row row;
      row.set("strategy", experiment_.strategy);
      row.set("ranks", std::int64_t{run_.transport.ranks()});
      row.set("step", snapshot.mini_batches);
      row.set("mini_batches_a_step", mini_batches_a_step(experiment_.plan));
      row.set("samples", static_cast<double>(snapshot.mini_batches) * samples_a_mini_batch);
      row.set("seconds", snapshot.seconds);
      row.set("loss", score.loss);
      if (!std::isnan(score.accuracy)) row.set("accuracy", score.accuracy);
      rows.push_back(std::move(row));
    }
    return rows;
  }
  /// After `rows`: the parameters at the end.
  const Parameters& last() const { return last_; }

 private:
  const RankRun& run_;
  const Experiment& experiment_;
  LearningTask task_;
  TrainAndTest data_;
  std::unique_ptr<Backend> backend_ = make_onednn_backend();
  Network network_;
  Batches batches_;
  Parameters start_, last_;
  std::vector<Snapshot> snapshots_;
};

/// The point again with as many steps as its learning takes.
Experiment learning_experiment(const RankRun& run, const Validation& validation, std::size_t index,
                               const Experiment& timed, Library& library) {
  const std::int64_t each = mini_batches_a_step(timed.plan);
  const std::int64_t steps = (timed.learning->mini_batches + each - 1) / each;
  return measured_experiment(validation, index, run.folder,
                             {parse_assignment(fmt::format("simulation.steps={}", steps))}, library);
}

void learn(const LearningWorld& world, const Validation& validation, std::size_t index,
           const Experiment& experiment) {
  const RankRun& run = world.run;
  const Point& point = validation.scenario.points[validation.points[index]];
  say(run.state, fmt::format("{} (learning)", point.name).c_str());
  Learner learner(run, experiment, validation.needs[index].batch);
  const auto device = kernel_device(learner.network(), learner.learning());
  RealCollectives collectives(experiment.plan, link_table_of(experiment.platform, experiment.plan.endpoints),
                              run.transport.rank());
  RealWorld real{experiment.plan, run.transport, world.thread,      world.mail,
                 *device,         collectives,   world.completions, run.state};
  const std::int64_t each = mini_batches_a_step(experiment.plan);
  std::int64_t done = 0;
  real.step_ended = [&](double seconds) {
    const std::int64_t before = done;
    done += each;
    const int every = experiment.learning->evaluate_every;
    if (run.transport.rank() == 0 && done / every > before / every) learner.take_snapshot(done, seconds);
  };
  run_program(real, ++world.runs);
  if (run.transport.rank() == 0) {
    for (Row& row : learner.rows()) {
      Row named;
      named.set("point", point.name);
      for (auto& [column, cell] : row.cells) named.set(column, std::move(cell));
      append_line(run.folder / "learning.jsonl", to_json_line({validation.scenario.name, {}}, named));
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
