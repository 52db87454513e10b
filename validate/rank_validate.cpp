#include "validate/rank_validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "core/error.hpp"
#include "kernels/capture.hpp"
#include "kernels/processor.hpp"
#include "models/join_traces.hpp"
#include "models/trace_text.hpp"
#include "report/atomic_file.hpp"
#include "report/json_lines.hpp"
#include "scenarios/data_files.hpp"
#include "strategies/collectives/algorithms.hpp"
#include "validate/gather.hpp"
#include "validate/learning_runs.hpp"
#include "validate/rank_calibrate.hpp"
#include "validate/real_worker.hpp"
#include "validate/repeats.hpp"
#include "validate/step_seconds.hpp"

namespace stepcast {
namespace {

constexpr double kDisturbance = 0.05;  // of compute: wall against CPU time
constexpr int kCaptureRounds = 6;      // over all networks
constexpr int kCaptureSteps = 8;       // of each network in a round
constexpr int kAttempts = 3;           // runs made at most, as a multiple of those wanted

const Model& model_of(const Need& need, Library& library) {
  const YamlNode name = command_line_name(need.model);
  return library.model(YamlValue(name, "model"));
}

double greatest(Transport& transport, double own) {
  double worst = own;
  for (const auto& rank : gathered(transport, {own})) worst = std::max(worst, rank[0]);
  return shared_value(transport, worst);
}

void sum_gradients(Transport& transport, Network& network) {
  const ParameterView& all = network.all_parameters();
  const auto schedule = ring_all_reduce({transport.ranks(), 1});
  play(transport, rounds_of(schedule, transport.rank(), static_cast<std::int64_t>(all.elements)),
       all.gradient);
}

std::filesystem::path own_trace_file(const RankRun& run, const Need& need, int rank) {
  const auto file = trace_file(run.folder, need);
  return run.folder / fmt::format("{}-rank{}.yaml", file.stem().string(), rank);
}

CaptureOptions capture_options(const RankRun& run, const Need& need, const ValidationOptions& options) {
  CaptureOptions capturing;
  capturing.name = trace_file(run.folder, need).stem().string();
  capturing.command = fmt::format("stepcast validate {} --ranks {}", options.scenario, run.cluster.ranks);
  capturing.batch = need.batch;
  capturing.steps = kCaptureRounds * kCaptureSteps;
  capturing.disturbance = options.accept_disturbed ? 1e9 : kDisturbance;
  capturing.attempts = 2 * kAttempts;
  capturing.progress = [&run](double, Seconds) { run.state.beat.fetch_add(1); };
  if (options.sleep) return capturing;
  capturing.worst = [&run](double own) { return greatest(run.transport, own); };
  if (need.exchanges)
    capturing.exchange = [&run](Network& network) { sum_gradients(run.transport, network); };
  return capturing;
}

/// All ranks at once, so that they share the machine as they will when they train, with the sum of gradients
/// in each step that training has; where they sleep instead, one. A worker's step is any rank's: cores of a
/// shared machine are not equally fast. Networks take turns, as points will: the
/// speed of a shared machine changes within seconds.
void capture_traces(const RankRun& run, const Validation& validation, const ValidationOptions& options,
                    Library& library) {
  const std::set<Need> needs(validation.needs.begin(), validation.needs.end());
  const auto backend = make_onednn_backend();
  std::map<Need, Capture> captures;
  for (const Need& need : needs) {
    if (options.sleep && run.transport.rank() != 0) continue;
    captures.try_emplace(need, *backend, model_of(need, library), capture_options(run, need, options));
  }
  for (int round = 0; round < kCaptureRounds; ++round) {
    for (const Need& need : needs) {
      say(run.state, fmt::format("capturing {} with batch {}", need.model, need.batch).c_str());
      barrier(run.transport);
      if (const auto found = captures.find(need); found != captures.end())
        found->second.measure(kCaptureSteps);
    }
  }
  for (auto& [need, one] : captures)
    write_atomically(own_trace_file(run, need, run.transport.rank()), to_yaml(one.trace()));
  barrier(run.transport);
  if (run.transport.rank() != 0) return;
  for (const Need& need : needs) {
    Trace all = library.trace(YamlValue(command_line_name(own_trace_file(run, need, 0).string()), "trace"));
    for (int rank = 1; rank < run.transport.ranks() && !options.sleep; ++rank) {
      join(all,
           library.trace(YamlValue(command_line_name(own_trace_file(run, need, rank).string()), "trace")));
    }
    write_atomically(trace_file(run.folder, need), to_yaml(all));
  }
}

/// A point of the validation, ready to run on this rank.
struct RealPoint {
  Experiment experiment;
  std::unique_ptr<RankDevice> device;
  std::unique_ptr<RealCollectives> collectives;
};

class RealRuns {
 public:
  RealRuns(const RankRun& run, const Validation& validation, const ValidationOptions& options,
           Library& library)
      : run_(run), validation_(validation), options_(options), library_(library), mail_(*run.mail) {
    for (std::size_t i = 0; i < validation.points.size(); ++i) add(i);
  }

  /// What comes after the timed runs.
  void learn() { learn_all({run_, thread_, mail_, completions_, runs_}, validation_, library_); }

  /// Repeats in turn over all points; those that were disturbed again, up to a limit.
  void all() {
    std::vector<int> kept(points_.size(), 0), made(points_.size(), 0);
    bool more = true;
    while (more) {
      more = false;
      for (std::size_t i = 0; i < points_.size(); ++i) {
        if (kept[i] >= options_.repeats || made[i] >= kAttempts * options_.repeats) continue;
        kept[i] += once(i, made[i]) ? 1 : 0;
        ++made[i];
        more = true;
      }
    }
  }

 private:
  void add(std::size_t index) {
    auto point = std::make_unique<RealPoint>();
    point->experiment = measured_experiment(validation_, index, run_.folder, {}, library_);
    const Experiment& experiment = point->experiment;
    point->collectives = std::make_unique<RealCollectives>(
        experiment.plan, link_table_of(experiment.platform, experiment.plan.endpoints),
        run_.transport.rank());
    if (options_.sleep) {
      point->device =
          sleeping_device(experiment.plan.workloads.front(), trainable_parameters(experiment.model));
    } else {
      Network& network = network_of(validation_.needs[index], experiment);
      DeviceLearning learning;
      learning.summed = experiment.plan.summed_gradients;
      learning.owned = scattered_parts(experiment.plan, run_.transport.rank(), ArrayMap(network));
      point->device = kernel_device(network, std::move(learning));
    }
    points_.push_back(std::move(point));
  }

  /// One network for all points that train it.
  Network& network_of(const Need& need, const Experiment& experiment) {
    auto& network = networks_[need];
    if (network == nullptr) {
      network = std::make_unique<Network>(
          *backend_, experiment.model,
          NetworkOptions{.batch = need.batch,
                         .data_seed = static_cast<std::uint64_t>(1 + run_.transport.rank())});
    }
    return *network;
  }

  /// @return whether the run was undisturbed, the same on all ranks
  bool once(std::size_t index, int repeat) {
    RealPoint& point = *points_[index];
    const std::string& name = validation_.scenario.points[validation_.points[index]].name;
    say(run_.state, fmt::format("{} (repeat {})", name, repeat + 1).c_str());
    RealWorld world{point.experiment.plan, run_.transport,     thread_,      mail_,
                    *point.device,         *point.collectives, completions_, run_.state};
    const RealRun result = run_program(world, ++runs_);
    const double disturbance =
        result.worked.wall > 0 ? std::max(0.0, 1 - result.worked.cpu / result.worked.wall) : 0;
    std::vector<double> mine = result.step_ends;
    const auto ends = gathered(run_.transport, mine);
    const auto others = gathered(run_.transport, {disturbance, mean_of(result.compute_seconds)});
    double worst = 0;
    if (run_.transport.rank() == 0) worst = write(point, name, repeat, ends, others);
    worst = shared_value(run_.transport, worst);
    return options_.accept_disturbed || worst <= kDisturbance;
  }

  static double mean_of(const std::vector<double>& values) {
    double sum = 0;
    for (const double value : values) sum += value;
    return values.empty() ? 0 : sum / static_cast<double>(values.size());
  }

  /// @return the disturbance of the rank that suffered most
  double write(const RealPoint& point, const std::string& name, int repeat,
               const std::vector<std::vector<double>>& ends, const std::vector<std::vector<double>>& others) {
    const Plan& plan = point.experiment.plan;
    double worst = 0, compute = 0;
    for (const std::vector<double>& rank : others) {
      worst = std::max(worst, rank[0]);
      compute += rank[1] / plan.workers;
    }
    Row row;
    row.set("point", name);
    row.set("repeat", std::int64_t{repeat + 1});
    row.set("step_seconds",
            plan.asynchronous ? asynchronous_step_seconds(ends) : synchronous_step_seconds(ends));
    row.set("compute_seconds", compute);
    row.set("disturbance", worst);
    row.set("kept", options_.accept_disturbed || worst <= kDisturbance);
    append_line(run_.folder / "samples.jsonl", to_json_line({validation_.scenario.name, {}}, row));
    return worst;
  }

  const RankRun& run_;
  const Validation& validation_;
  const ValidationOptions& options_;
  Library& library_;
  std::unique_ptr<Backend> backend_ = make_onednn_backend();
  std::map<Need, std::unique_ptr<Network>> networks_;
  std::vector<std::unique_ptr<RealPoint>> points_;
  CommunicationThread thread_;
  RealMail mail_;
  Completions completions_;
  int runs_ = 0;
};

}  // namespace

void rank_validate(const RankRun& run, const ValidationOptions& options) {
  const Validation validation = read_validation(options, run.cluster.ranks);
  Library library;
  run.transport.count_waits(&run.state.beat);
  rank_calibrate(run, true);
  capture_traces(run, validation, options, library);
  wait_at_gate(run.control, run.state, 1);
  RealRuns runs(run, validation, options, library);
  runs.all();
  runs.learn();
}

}  // namespace stepcast
