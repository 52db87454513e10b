#include "validate/rank_validate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "report/atomic_file.hpp"
#include "report/csv.hpp"
#include "report/json_lines.hpp"
#include "validate/cut_device.hpp"
#include "validate/gather.hpp"
#include "validate/learning_runs.hpp"
#include "validate/rank_calibrate.hpp"
#include "validate/rank_capture.hpp"
#include "validate/real_worker.hpp"
#include "validate/repeats.hpp"
#include "validate/roles.hpp"
#include "validate/stage_device.hpp"
#include "validate/step_seconds.hpp"

namespace stepcast {
namespace {

/// A point of the validation, ready to run on this rank.
struct RealPoint {
  Experiment experiment;
  StageNetworks stage;
  CutNetwork cut;
  std::unique_ptr<RankDevice> device;
  std::unique_ptr<RealCollectives> collectives;
  double delay = 0;  ///< of this rank's program [s]
};

class RealRuns {
 public:
  RealRuns(const RankRun& run, const Validation& validation, const ValidationOptions& options,
           Library& library)
      : run_(run),
        validation_(validation),
        options_(options),
        library_(library),
        thread_(&run.state.collectives_beat),
        mail_(*run.mail, &run.state.messages_beat) {
    const auto file = run.folder / "predicted.csv";
    const Results predicted = read_csv(read_file(file), file.string());
    for (std::size_t i = 0; i < validation.points.size(); ++i) {
      add(i);
      points_.back()->delay = delay_of(i, predicted.rows.at(i).number("step_seconds").value_or(0));
    }
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
      point->device = device_of(validation_.needs[index], validation_.compresses[index], *point);
    }
    points_.push_back(std::move(point));
  }

  /// Workers without a common pace that start together go on in step for long, as links are fair; theirs is
  /// spread over the time from one exchange of a worker to its next, as they are found later on.
  double delay_of(std::size_t index, double step_seconds) const {
    const Plan& plan = points_[index]->experiment.plan;
    const int worker = run_.transport.rank(), workers = training_ranks(plan);
    if (!plan.asynchronous || worker >= workers) return 0;
    return static_cast<double>(validation_.periods[index]) * step_seconds * worker / workers;
  }

  /// Of this rank's part of the network, where the plan cuts it.
  std::unique_ptr<RankDevice> device_of(const Need& need, bool compresses, RealPoint& point) {
    const Experiment& experiment = point.experiment;
    const NetworkSharing& sharing = experiment.plan.sharing;
    const int rank = run_.transport.rank();
    NetworkOptions options{.batch = need.batch, .data_seed = static_cast<std::uint64_t>(1 + rank)};
    options.optimizer = {.learning_rate = 1e-3 / experiment.plan.workers};
    const int role = role_of(experiment.plan, rank);
    if (sharing.form == NetworkSharing::Form::stages && role >= 0) {
      const int stages = static_cast<int>(experiment.plan.roles.size());
      point.stage = stage_networks(*backend_, experiment.model, sharing, role, stages, options);
      return stage_device(
          point.stage, sharing, role,
          scattered_parts(experiment.plan, rank, ArrayMap(point.stage.chunks.front().first())));
    }
    if (sharing.form == NetworkSharing::Form::positions && role >= 0) {
      const int place = rank % device_count(sharing.cut.parts);
      point.cut = cut_network(*backend_, experiment.model, sharing, place, options);
      return cut_device(point.cut, experiment.model, sharing, place);
    }
    Network& network = network_of(need, experiment);
    DeviceLearning learning;
    learning.summed = experiment.plan.summed_gradients;
    learning.place = rank;
    learning.compresses = compresses;
    learning.owned = scattered_parts(experiment.plan, rank, ArrayMap(network));
    return kernel_device(network, std::move(learning));
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
    RealWorld world{point.experiment.plan, run_.transport, thread_,    mail_,       *point.device,
                    *point.collectives,    completions_,   run_.state, point.delay, run_.library_all_reduce};
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
  rank_calibrate(run, true);
  capture_traces(run, validation, options, library);
  wait_at_gate(run.control, run.state, 1);
  RealRuns runs(run, validation, options, library);
  runs.all();
  runs.learn();
}

}  // namespace stepcast
