#include "validate/rank_validate.hpp"

#include "kernels/stopwatch.hpp"
#include "scenarios/data_files.hpp"
#include "validate/core_distance.hpp"
#include "validate/learning_runs.hpp"
#include "validate/part_devices.hpp"
#include "validate/rank_calibrate.hpp"
#include "validate/rank_capture.hpp"
#include "validate/real_runs.hpp"
#include "validate/roles.hpp"

namespace stepcast {
namespace {

/// Ranks that sleep, and those that have a part of every sample or of every layer.
class OtherDevices {
 public:
  OtherDevices(const RankRun& run, Backend& backend, const Validation& validation,
               const ValidationOptions& options, CapturedParts captured)
      : run_(run),
        validation_(validation),
        options_(options),
        parts_(backend, run.transport.rank(), std::move(captured)) {}

  /// Null: neither.
  std::unique_ptr<RankDevice> device(std::size_t index, const Experiment& experiment) {
    if (options_.sleep)
      return sleeping_device(experiment.plan.workloads.front(), trainable_parameters(experiment.model),
                             sleep_noise(experiment));
    return parts_.device(experiment,
                         cut_trace_file(run_.folder, validation_.needs[index], validation_.cuts[index]));
  }

 private:
  SleepNoise sleep_noise(const Experiment& experiment) const {
    const Plan& plan = experiment.plan;
    const int rank = run_.transport.rank(), role = role_of(plan, rank);
    if (role < 0) return {};
    const int node = experiment.platform.node_of(plan.endpoints[static_cast<std::size_t>(rank)]);
    return {.noise = experiment.noise,
            .seed = experiment.seed,
            .worker = static_cast<std::uint32_t>(experiment.noise.per_node ? node : rank),
            .training = plan.roles[static_cast<std::size_t>(role)].training};
  }

  const RankRun& run_;
  const Validation& validation_;
  const ValidationOptions& options_;
  PartDevices parts_;
};

constexpr double kLook = 3;  // seconds: the host moves cores several times in it

// Of a probe, 2 ms each. What ran before has left its own in the caches, so that the first are slow.
constexpr int kWarmSteps = 4, kTimedSteps = 4;

/// Its probe is some training steps of a small network.
std::unique_ptr<MachineSpeed> machine_speed(const RankRun& run, Backend& backend, Library& library) {
  const YamlNode name = command_line_name("small-cnn");
  const Model& model = library.model(YamlValue(name, "model"));
  const auto network = std::make_shared<Network>(backend, model, NetworkOptions{.batch = 4});
  return std::make_unique<MachineSpeed>(run.transport, [network] {
    network->reset();  // always the same work: it does not learn
    for (int i = 0; i < kWarmSteps; ++i) network->step();
    const Instant begin = now();
    for (int i = 0; i < kTimedSteps; ++i) network->step();
    return now().wall - begin.wall;
  });
}

}  // namespace

void rank_validate(const RankRun& run, const ValidationOptions& options) {
  const Validation validation = read_validation(options, run.cluster.ranks);
  Library library;
  const auto backend = make_onednn_backend();
  const auto speed = options.sleep ? nullptr : machine_speed(run, *backend, library);
  CoreDistance cores(run.transport);
  if (!options.sleep && run.cluster.kind == Cluster::Kind::memory) {
    say(run.state, "looking where the cores are");
    cores.settle(kLook);
    run.transport.look_at_cores(&cores);
  }
  rank_calibrate(run, true);
  auto networks = capture_traces(run, validation, options, {*backend, library, speed.get()});
  wait_at_gate(run.control, run.state, 1);
  OtherDevices others(run, *backend, validation, options, std::move(networks.parts));
  RealRuns runs(
      run, validation, options, library,
      {.backend = *backend,
       .device = [&others](std::size_t index,
                           const Experiment& experiment) { return others.device(index, experiment); },
       .speed = speed.get(),
       .networks = std::move(networks.whole)});
  runs.all();
  learn_all({run, *backend, runs.thread(), runs.mail(), runs.completions(), runs.runs()}, validation,
            library);
}

}  // namespace stepcast
