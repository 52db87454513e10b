#include "commands/learn/learning_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "commands/fingerprint.hpp"
#include "core/error.hpp"
#include "core/os/files.hpp"
#include "forecast/processes/process_pool.hpp"
#include "forecast/simulate_point.hpp"
#include "kernels/onednn/backend.hpp"
#include "kernels/timing/host_info.hpp"
#include "report/results/results.hpp"
#include "runtime/learning/in_process_collectives.hpp"
#include "runtime/learning/learning_runs.hpp"
#include "runtime/scenario_points/validation_plan.hpp"
#include "sim/simulation.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

namespace {

constexpr bool kMayCompress = true;  // costs one look at the parameters

/// State that all ranks of a simulation that learns share.
struct LearningRanks {
  const Plan& plan;
  InProcessQueues queues;  ///< of parameters that are gathered for evaluation
  std::optional<InProcessCollectives> collectives;
  JointNetworks joint;
};

/// True if the ranks of a replica or group compute in one network.
bool has_joint_networks(const Plan& plan) {
  const ModelPartition::Form form = plan.partition.form;
  return form == ModelPartition::Form::machines || form == ModelPartition::Form::group;
}

/// The network and arrays of one rank; the simulated clock decides when they compute.
class LearningMemory : public WorkerMemory {
 public:
  LearningMemory(const Experiment& experiment, Backend& backend, LearningRanks& ranks,
                 Learner::Options options)
      : rank_(options.rank),
        ranks_(ranks),
        transport_(ranks.queues, rank_, ranks.plan.endpoints.size()),
        learner_(experiment, backend, with_shared(std::move(options), transport_, ranks_.joint)),
        device_(learner_.device()) {
    device_->begin();
  }

  void begin(const AllReduceChoices& choices) override {
    if (!ranks_.collectives) ranks_.collectives.emplace(ranks_.plan, choices);
  }
  void compute(Work pass, LayerRange layers) override { device_->compute(pass, layers); }
  void calculate(const Arithmetic& run) override { device_->calculate(run); }

  std::function<void()> start_collective(CollectiveId id, std::size_t call) override {
    if (has_joint_networks(ranks_.plan)) return {};  // what the ranks exchange is in their network
    CollectiveBinding binding = device_->bind_collective(ranks_.plan.collectives[id.index()]);
    std::function<void()> on_waited = std::move(binding.on_waited);
    ranks_.collectives->join(id, call, rank_, std::move(binding));
    return on_waited;
  }
  std::span<float> send_buffer(const Message& message) override { return device_->send_buffer(message); }
  void receive(const Message& message, std::span<const float> values) override {
    std::ranges::copy(values, device_->receive_buffer(message).begin());
    device_->on_received(message);
  }
  void step_ended(double seconds) override {
    device_->begin_step(++steps_);
    learner_.step_ended(seconds);
  }

  /// Loss and accuracy on rank 0. Every other rank that holds evaluated parameters must have been
  /// asked before, because it then sends them to rank 0.
  std::vector<EvaluatedLoss> evaluations() {
    return learner_.holds_evaluated_parameters() ? learner_.evaluate() : std::vector<EvaluatedLoss>();
  }
  /// After `evaluations`: the parameters at the end.
  const Parameters& final_parameters() const { return learner_.final_parameters(); }

 private:
  static Learner::Options with_shared(Learner::Options options, Transport& transport, JointNetworks& joint) {
    options.transport = &transport;
    options.joint = &joint;
    return options;
  }

  RankId rank_;
  int steps_ = 0;
  LearningRanks& ranks_;
  InProcessTransport transport_;
  Learner learner_;
  std::unique_ptr<RankDevice> device_;
};

}  // namespace

std::string unsupported_simulated_learning(const Experiment& experiment) {
  if (experiment.plan.partition.tokens.any())
    return "divided tokens (sequence_parallel, mesh.context): only real ranks learn with them";
  const int ranks = experiment.plan.endpoints.size();
  const std::string why =
      unsupported_in_real_run(experiment.plan, ranks, has_joint_networks(experiment.plan));
  return why.empty() ? unsupported_learning(experiment) : why;
}

Bytes learning_memory(const Experiment& experiment) {
  return experiment.plan.endpoints.size() * experiment.plan.memory.total();
}

SimulatedLearning simulate_learning(const Experiment& experiment, std::int64_t batch,
                                    const std::filesystem::path& checkpoint) {
  set_kernel_threads(1);  // only one rank computes at a time, and other points use the other cores
  const auto data = learning_data(experiment);
  const auto backend = make_onednn_backend();
  LearningRanks shared{experiment.plan, {}, {}, {}};
  std::vector<std::unique_ptr<LearningMemory>> ranks;
  Simulation simulation = simulation_of(experiment);
  simulation.fold = Folding::never;
  for (const RankId rank : first_ranks(experiment.plan.endpoints.size())) {
    ranks.push_back(std::make_unique<LearningMemory>(
        experiment, *backend, shared, Learner::Options{rank, batch, data, [] {}, kMayCompress}));
    simulation.memories.push_back(ranks.back().get());
  }
  SimulatedLearning learned;
  learned.seconds = simulate(simulation).seconds;
  for (std::size_t rank = ranks.size(); rank-- > 1;) ranks[rank]->evaluations();
  learned.evaluations = ranks.front()->evaluations();
  if (!checkpoint.empty()) save_checkpoint(checkpoint, experiment.model, ranks.front()->final_parameters());
  return learned;
}

TrainingStore::TrainingStore(const std::filesystem::path& folder, const std::string& fingerprint, bool resume)
    : folder_(folder / "trainings") {
  const std::filesystem::path of_inputs = folder_ / "inputs.sha256";
  if (may_resume(of_inputs, fingerprint, resume)) return;
  std::error_code error;
  if (std::filesystem::exists(of_inputs, error)) std::filesystem::remove_all(folder_, error);
  std::filesystem::create_directories(folder_, error);
  write_fingerprint(of_inputs, fingerprint);
}

std::optional<std::string> TrainingStore::known(const std::string& name) const {
  std::error_code error;
  if (folder_.empty() || !std::filesystem::exists(file_of(name), error)) return std::nullopt;
  std::string lines = read_file(file_of(name));
  if (read_json_lines(lines, file_of(name).string()).rows.empty()) return std::nullopt;
  return lines;
}

void TrainingStore::add(const std::string& name, const std::string& lines) const {
  if (!folder_.empty()) write_atomically(file_of(name), lines);
}

namespace {

/// Builds the experiment of a training. Its number of steps is known only after it has been built once.
/// @param mini_batches  of each worker, where they are not those of the scenario
Experiment learning_experiment(const Scenario& scenario, const std::vector<Assignment>& values,
                               std::int64_t seed, Library& library,
                               std::optional<int> mini_batches = std::nullopt) {
  Overrides overrides{.mini_batches = mini_batches};
  Experiment experiment = build_experiment(scenario.document, values, library, overrides);
  if (!experiment.learning)
    throw InputError(
        fmt::format("{}: learning: the command learn needs this key (docs/how-to/learn-loss-against-time.md)",
                    scenario.file.string()));
  overrides = learning_overrides(experiment, seed);
  overrides.mini_batches = mini_batches;
  if (seed == 1 && experiment.steps == *overrides.steps) return experiment;
  return build_experiment(scenario.document, values, library, overrides);
}

void check_learns(const Scenario& scenario, const Point& point, const Experiment& experiment) {
  const std::string why = unsupported_simulated_learning(experiment);
  if (!why.empty())
    throw InputError(fmt::format("{}: point {} cannot learn in a simulation: {}", scenario.file.string(),
                                 point.name, why));
}

/// Mini-batches and seed, which trainings that start from the same parameters have in common.
using WarmStartKey = std::pair<int, std::int64_t>;

/// The training of one worker before the others start, and its last row.
struct WarmStart {
  LearningRun run;
  std::filesystem::path checkpoint;
  EvaluatedLoss end = {};
};

WarmStart warm_start_of(const LearningJob& job, const WarmStartKey& key, Library& library) {
  const auto [mini_batches, seed] = key;
  const Point alone{
      fmt::format("warm start of {} mini-batches", mini_batches),
      {assignment("workers", 1), assignment("strategy", std::vector{assignment("kind", kPlainReplicas)})}};
  const std::vector<Assignment> values = middle_values(job.scenario, alone);
  WarmStart start{{alone.name, seed, learning_experiment(job.scenario, values, seed, library, mini_batches)},
                  job.folder / fmt::format("warm-start-{}-seed-{}.parameters", mini_batches, seed)};
  start.run.batch = start.run.experiment.plan.samples_of_pass;
  start.run.experiment.learning->warm_start = 0;
  return start;
}

std::string text_of(const Scenario& scenario, const std::vector<EvaluatedLoss>& evaluations) {
  std::string text;
  for (const EvaluatedLoss& one : evaluations) text += to_json_line({scenario.name, {}}, to_row(one)) + "\n";
  return text;
}

/// A training to run in a child process, unless it is known.
struct Training {
  std::string name;  ///< in the store of finished trainings
  const LearningRun* run = nullptr;
  std::filesystem::path checkpoint = {};  ///< for the parameters at the end; empty: none
  bool only_end = false;                  ///< keeps the last row alone
};

std::string trained_text(const Scenario& scenario, const Training& training) {
  std::vector<EvaluatedLoss> all =
      simulate_learning(training.run->experiment, training.run->batch, training.checkpoint).evaluations;
  if (training.only_end) all.erase(all.begin(), all.end() - 1);
  return text_of(scenario, all);
}

/// The rows of every training as JSON lines. Finished ones come from the store if their checkpoint is there.
std::vector<std::string> train_all(const LearningJob& job, const std::vector<Training>& trainings,
                                   const char* what) {
  std::vector<std::string> texts(trainings.size());
  std::vector<Task> tasks;
  std::vector<std::size_t> of_task;
  for (std::size_t i = 0; i < trainings.size(); ++i) {
    const Training& one = trainings[i];
    const auto known = job.finished.known(one.name);
    if (known && (one.checkpoint.empty() || std::filesystem::exists(one.checkpoint))) {
      texts[i] = *known;
      continue;
    }
    of_task.push_back(i);
    tasks.push_back([&job, &one] { return trained_text(job.scenario, one); });
  }
  TaskProgress progress(tasks.size(), what);
  run_tasks(tasks, job.processes, [&](std::size_t task, const std::string& text) {
    texts[of_task[task]] = text;
    job.finished.add(trainings[of_task[task]].name, text);
    if (job.shows_progress) progress.one_done();
  });
  progress.clear();
  return texts;
}

/// Trains every warm start that the runs need, and makes the runs start from it.
std::map<WarmStartKey, WarmStart> warm_starts(const LearningJob& job, std::vector<LearningRun>& runs) {
  std::map<WarmStartKey, WarmStart> starts;
  Library library;
  for (const LearningRun& run : runs) {
    const WarmStartKey key{run.experiment.learning->warm_start, run.seed};
    if (key.first > 0 && !starts.contains(key)) starts.emplace(key, warm_start_of(job, key, library));
  }
  std::vector<Training> trainings;
  std::vector<WarmStart*> of_training;
  for (auto& entry : starts) {
    of_training.push_back(&entry.second);
    const auto [mini_batches, seed] = entry.first;
    trainings.push_back({fmt::format("warm-start-{}-seed-{}", mini_batches, seed), &entry.second.run,
                         entry.second.checkpoint, true});
  }
  const std::vector<std::string> texts = train_all(job, trainings, "warm starts");
  for (std::size_t i = 0; i < texts.size(); ++i)
    of_training[i]->end = evaluations_of(read_json_lines(texts[i], "a warm start"), "a warm start").front();
  for (LearningRun& run : runs) {
    const auto found = starts.find({run.experiment.learning->warm_start, run.seed});
    if (found != starts.end()) run.experiment.learning->start = found->second.checkpoint.string();
  }
  return starts;
}

}  // namespace

std::string fingerprint_of(const Scenario& scenario, const std::vector<std::string>& settings) {
  Library library;
  std::set<std::string> learned_from;  // files of data and checkpoints
  for (const Point& point : scenario.points) {
    const Experiment one = build_experiment(scenario.document, middle_values(scenario, point), library);
    if (!one.learning) continue;
    const DataOptions& data = one.learning->data;
    for (const auto* files : {&data.train, &data.test, &data.train_labels, &data.test_labels})
      learned_from.insert(files->begin(), files->end());
    if (one.learning->start) learned_from.insert(*one.learning->start);
  }
  std::vector<InputFile> inputs = input_files(scenario, library);
  for (const std::string& path : learned_from) inputs.push_back(hashed("learning", path));
  return fingerprint_of(inputs, settings);
}

std::vector<LearningRun> learning_runs(const Scenario& scenario) {
  if (!scenario.calibrations.empty())
    throw InputError(fmt::format("{}: calibrate: not supported by learn; set the calibrated keys with --set",
                                 scenario.file.string()));
  Library library;
  std::vector<LearningRun> runs;
  for (const Point& point : scenario.points) {
    const std::vector<Assignment> values = middle_values(scenario, point);
    Experiment first = learning_experiment(scenario, values, 1, library);
    check_learns(scenario, point, first);
    const int seeds = first.learning->seeds;
    const std::int64_t batch = first.plan.samples_of_pass;
    runs.push_back({point.name, 1, std::move(first), batch});
    for (int seed = 2; seed <= seeds; ++seed)
      runs.push_back({point.name, seed, learning_experiment(scenario, values, seed, library), batch});
  }
  return runs;
}

LearningRun cut_training(const Scenario& scenario, const LearningRun& run, std::int64_t mini_batches) {
  Library library;
  const Point& point = *std::ranges::find(scenario.points, run.point, &Point::name);
  return {run.point, 1,
          learning_experiment(scenario, middle_values(scenario, point), 1, library,
                              static_cast<int>(mini_batches)),
          run.batch};
}

Results trained(const LearningJob& job, std::vector<LearningRun> runs) {
  const auto starts = warm_starts(job, runs);
  std::vector<Training> trainings;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    Training& training = trainings.emplace_back(Training{fmt::format("training-{}", i + 1), &runs[i]});
    if (job.checkpoints) training.checkpoint = job.folder / (training.name + ".parameters");
  }
  const std::vector<std::string> texts = train_all(job, trainings, "trainings");
  Results all{job.scenario.name, {}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto start = starts.find({runs[i].experiment.learning->warm_start, runs[i].seed});
    for (EvaluatedLoss& one : evaluations_of(read_json_lines(texts[i], "a training"), "a training")) {
      if (start != starts.end()) {
        one.seconds += start->second.end.seconds;
        one.samples += start->second.end.samples;
      }
      one.point = runs[i].point;
      one.seed = runs[i].seed;
      all.rows.push_back(to_row(one));
    }
  }
  return all;
}

}  // namespace stepcast
