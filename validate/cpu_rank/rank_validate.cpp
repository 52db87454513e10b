#include "validate/cpu_rank/rank_validate.hpp"

#include <algorithm>
#include <thread>

#include "core/os/files.hpp"
#include "kernels/network/backend.hpp"
#include "kernels/network/network.hpp"
#include "kernels/onednn/backend.hpp"
#include "kernels/timing/step_timer.hpp"
#include "report/results/results.hpp"
#include "runtime/devices/rank_shard.hpp"
#include "runtime/host_noise/repeated_timing.hpp"
#include "runtime/learning/learning_runs.hpp"
#include "runtime/runs/point_runs.hpp"
#include "runtime/transport/progress_thread.hpp"
#include "scenarios/reader/library.hpp"
#include "strategies/plan/plan.hpp"
#include "validate/cpu_rank/trace_capture.hpp"
#include "validate/launch/core_shares.hpp"
#include "validate/measure/link_benchmark.hpp"
#include "validate/measure/link_results.hpp"

namespace stepcast {
void rank_calibrate(const RankContext& run, bool quick) {
  LinkBenchmarkOptions options;
  options.table_only = quick;
  options.one_way = run.cluster.kind == Cluster::Kind::memory;
  const bool netcluster = run.cluster.kind == Cluster::Kind::netcluster;
  if (netcluster) options.pause = 0.01;  // lets the links' queues and token buckets recover, as between steps
  if (quick) {
    options.max_seconds = 0.15;
    options.rounds = netcluster ? 2 : 4;  // rate-limited links hardly change from second to second
  }
  if (!quick) options.max_bytes = 140e6;
  options.group = run.cluster.ranks / run.cluster.racks;
  // MPI's all-reduces over slow links take far longer than ours and add no information.
  if (!quick && !netcluster) options.compared = run.compared;
  options.on_progress = [&run](const std::string& what) {
    set_status(run.state, ("measuring " + what).c_str());
  };
  LinkMeasurements links = measure_links(run.transport, options);

  options.on_progress("contention between ranks");
  Library library;
  const YamlNode name = command_line_name("small-cnn");
  const auto backend = make_onednn_backend();
  Network network(*backend, library.model(YamlValue(name, "model")), {.batch = 8});
  const double seconds = quick && netcluster ? 0.1 : 0.5;
  const LinkMeasurements sharing = measure_contention(run.transport, run.polling, network, seconds);
  links.insert(links.end(), sharing.begin(), sharing.end());
  for (LinkMeasurement& one : links) one.ranks = run.cluster.ranks;
  if (run.transport.is_rank_0()) write_atomically(links_file(run.folder), to_json_lines(to_results(links)));
}

namespace {

/// Makes the devices of ranks that sleep, and of ranks with a spatial or tensor-parallel shard.
class SleepOrShardDevices {
 public:
  SleepOrShardDevices(const RankContext& run, Backend& backend, const Validation& validation,
                      const ValidationOptions& options, CapturedShards captured)
      : run_(run),
        validation_(validation),
        options_(options),
        parts_(backend, run.transport.rank(), std::move(captured)) {}

  /// The device of a point; null if the rank neither sleeps nor has a shard.
  std::unique_ptr<RankDevice> device(std::size_t index, const Experiment& experiment) {
    if (options_.sleep)
      return sleeping_device(experiment.plan.workloads.front(), trainable_parameters(experiment.model),
                             sleep_noise(experiment));
    return parts_.device(experiment, shard_trace_file(run_.folder, validation_.variants[index],
                                                      validation_.partitions[index]));
  }

 private:
  SleepNoise sleep_noise(const Experiment& experiment) const {
    const Plan& plan = experiment.plan;
    const RankId rank = run_.transport.rank();
    const RoleId role = role_of(plan, rank);
    if (!role.exists()) return {};
    const int node = experiment.platform.node_of(plan.endpoints[rank]);
    return {.noise = experiment.noise,
            .seed = experiment.seed,
            .worker = static_cast<std::uint32_t>(experiment.noise.per_node ? node : rank.value),
            .training = plan.roles[role.index()].training};
  }

  const RankContext& run_;
  const Validation& validation_;
  const ValidationOptions& options_;
  ShardDevices parts_;
};

constexpr double kBaselineSeconds = 3;  // long enough for the host to move cores several times

// Training steps of a probe, 2 ms each. The first ones are slow, because the caches hold other data, and are
// not timed.
constexpr int kWarmSteps = 4, kTimedSteps = 4;

/// A probe that times some training steps of a small network.
std::unique_ptr<CoreSpeedProbe> make_core_speed_probe(const RankContext& run, Backend& backend,
                                                      Library& library) {
  const YamlNode name = command_line_name("small-cnn");
  const Model& model = library.model(YamlValue(name, "model"));
  const auto network = std::make_shared<Network>(backend, model, NetworkOptions{.batch = 4});
  return std::make_unique<CoreSpeedProbe>(run.transport, [network, &polling = run.polling] {
    const ComputeScope computing(&polling);  // threads that carry messages of runs must not poll
    network->reset();                        // every probe does the same work
    for (int i = 0; i < kWarmSteps; ++i) network->step();
    const Instant begin = now();
    for (int i = 0; i < kTimedSteps; ++i) network->step();
    return now().wall - begin.wall;
  });
}

/// Trains a network of its own in the turns of a rank that waits, because the speed of a core also depends on
/// what its caches hold and on what the other cores compute.
std::jthread train_in_turns(Backend& backend, Library& library, const NetworkVariant& variant) {
  constexpr int kSteps = 16;  // after which it starts anew, so that no value grows or vanishes
  const Model& model = library.model(YamlValue(command_line_name(variant.model), "model"));
  const auto network = std::make_shared<Network>(backend, model, NetworkOptions{.batch = variant.batch});
  return take_turns([network] {
    network->reset();
    for (int step = 0; step < kSteps; ++step) network->step();
  });
}

constexpr double kSleepSeconds = 0.02;  // before a load, if no network computes

/// Measures the loads of input between training steps of a captured network, or between sleeps if the ranks
/// captured no whole network.
LoadCost time_loads(const RankContext& run, const CapturedNetworks& networks) {
  set_status(run.state, "measuring the storage");
  const bool computes = !networks.whole.empty();
  const auto compute = [&] {
    run.state.heartbeat.fetch_add(1);
    if (computes)
      networks.whole.begin()->second->step();
    else
      sleep_until(now().wall + kSleepSeconds);
  };
  LinkMeasurements loads = measure_storage(run.transport, run.polling, run.folder, compute);
  if (computes) {
    const LinkMeasurements beside =
        measure_compute_beside_load(run.transport, run.polling, run.folder, compute, loads);
    loads.insert(loads.end(), beside.begin(), beside.end());
  }
  LoadCost cost;
  for (const LinkMeasurement& one : loads) {
    append_line(links_file(run.folder), to_json_line(one));
    cost.off_core = std::max(cost.off_core, one.off_core_seconds.value_or(0) / one.bytes);
    cost.stolen = std::max(cost.stolen, one.stolen_seconds.value_or(0) / one.bytes);
  }
  return {broadcast_from_rank_0(run.transport, cost.off_core),
          broadcast_from_rank_0(run.transport, cost.stolen)};
}

}  // namespace

void rank_validate(const RankContext& run, const ValidationOptions& options) {
  const Validation validation =
      read_validation(options, run.cluster.ranks, placeholder_platform(run.cluster));
  Library library;
  const auto backend = make_onednn_backend();
  std::jthread filler;
  if (options.share_cores) filler = train_in_turns(*backend, library, validation.variants.front());
  const auto speed = options.sleep ? nullptr : make_core_speed_probe(run, *backend, library);
  CoreToCoreLatency cores(run.transport);
  if (!options.sleep && !options.share_cores && run.cluster.kind == Cluster::Kind::memory) {
    set_status(run.state, "measuring the latency between cores");
    cores.set_baseline(kBaselineSeconds);
    run.transport.set_core_latency(&cores);
  }
  const bool measured = options.sleep && options.measured;
  if (!measured) rank_calibrate(run, true);
  TraceCaptures captures(run, validation, options, {*backend, library, speed.get()});
  if (!measured) captures.take_turns();
  if (speed) speed->set_reference();
  if (!measured) captures.write();
  CapturedNetworks networks = captures.networks();
  const bool loads = any_plan(validation, &Plan::load_data);
  const LoadCost load_cost = loads ? time_loads(run, networks) : LoadCost{};
  wait_for_stage(run.control, run.state, 1);
  SleepOrShardDevices devices(run, *backend, validation, options, std::move(networks.shards));
  PointRuns runs(
      run, validation, options, library,
      {.backend = *backend,
       .device = [&devices](std::size_t index,
                            const Experiment& experiment) { return devices.device(index, experiment); },
       .speed = speed.get(),
       .loads = load_cost,
       .networks = std::move(networks.whole),
       .between_runs =
           [&](double share) {
             if (!measured) captures.take_turns(share);
           }});
  for (int forecast = 1; forecast < options.forecasts; ++forecast) {
    captures.begin();
    runs.run_all(forecast);
    captures.write();
    wait_for_stage(run.control, run.state, forecast + 1);
  }
  runs.run_all(options.forecasts);  // no turn of a capture is left
  learn_all({run, *backend, runs.collective_thread(), runs.messages(), runs.completions(), runs.last_run()},
            validation, library);
}

}  // namespace stepcast
