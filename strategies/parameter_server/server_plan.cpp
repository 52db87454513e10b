#include "strategies/parameter_server/server_plan.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "models/layer_times/trace.hpp"
#include "models/partition/layer_partition.hpp"
#include "strategies/options/strategy.hpp"
#include "strategies/plan/buckets.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {
namespace {

/// Time of a worker to compress an update, and of the servers to restore it.
CompressionSeconds codec_of(const Setting& setting, const ServerOptions& options,
                            const ServerStrategy& strategy, const Exchanged& exchanged) {
  const GradientCompression& compression = strategy.compression;
  if (compression.kind == Compression::none || !setting.host_compression) return {};
  const bool on_device = options.place == ServerOptions::Place::own_device;
  const auto& times = on_device ? setting.compression : setting.host_compression;
  return update_seconds(compression, times(compression.kind).cost, exchanged.size.value / 4);
}

/// Size of a compressed update over that of the parameters.
double update_share(const GradientCompression& compression, Bytes parameters) {
  const auto elements = static_cast<std::int64_t>(parameters.value / 4);
  return compression.kind == Compression::none ? 1 : wire_bytes(compression, elements) / parameters;
}

/// Adds the collectives of the ranks of a worker: new weights and the sum of gradients if each rank has its
/// own samples, barriers if the ranks share the network, whose communicator the plan has already.
void add_group(const Setting& setting, const ServerOptions& options, const Exchanged& exchanged, Plan& plan,
               MiniBatch& batch) {
  const int ranks = options.group_size * options.machines_per_replica;
  if (ranks == 1) return;
  const bool whole = options.group_size > 1;
  if (whole) {
    plan.communicators.push_back(
        communicator(setting.platform, plan.endpoints, first_ranks(setting.workers()), ranks));
    apply(options.communication, plan.communicators.back());
  }
  const Bytes size = whole ? exchanged.size : Bytes{};
  const Slice elements = whole ? exchanged.elements : Slice{};
  const CommunicatorId group{0};
  batch.share = add(plan, {Collective::Kind::broadcast, group, {Array::parameters, elements, size}, nullptr});
  batch.sum = add(plan, {Collective::Kind::all_reduce, group, {Array::gradients, elements, size}, nullptr});
}

Memory memory_of(const Setting& setting, const ServerOptions& options, const ServerStrategy& strategy,
                 std::int64_t batch) {
  const MemoryOptions memory = memory_options(setting, options.training, batch);
  const int machines = options.machines_per_replica;
  Memory held = machines > 1 ? training_memory(partition(setting.model, machines).sharded.part, memory)
                             : training_memory(setting.model, memory);
  held.gradients =
      held.gradients + strategy.held_arrays * 4 * trainable_parameters(setting.model) / machines * Bytes{1};
  return held;
}

/// Layer times of the whole network for a mini-batch of `samples`.
TimedWorkload whole_workload(const Setting& setting, const ServerOptions& options, std::int64_t samples) {
  TimedWorkload timed = make_workload(setting.model, setting.times(samples), options.training.compute_factor);
  timed.workload.input = samples * setting.sample_size;
  return timed;
}

/// Begins the plan: the layer times of one rank's part of a mini-batch of `samples`, and its passes.
/// @param whole  layer times of the whole network
TimedWorkload begin_plan(const Setting& setting, const ServerOptions& options, const TimedWorkload& whole,
                         Plan& plan, MiniBatch& batch) {
  batch.prefetch = setting.prefetch;
  batch.overhead = options.training.step_overhead;
  plan.endpoints = setting.devices;
  if (options.machines_per_replica == 1) return whole;
  MachineReplicas replicas = machine_replicas(setting, options);
  plan = std::move(replicas.plan);
  batch.passes = replicas.passes;
  batch.exchange_overhead = options.exchange_overhead;
  return std::move(replicas.part);
}

/// Sets the numbers of workers and devices, and the columns.
void add_numbers(const Setting& setting, const ServerOptions& options, const ServerStrategy& strategy,
                 const Tree& tree, Plan& plan) {
  const int servers = tree.shards + tree.sub_masters;
  plan.asynchronous = true;
  plan.workers = tree.workers * options.group_size;
  plan.summed_gradients = options.group_size;
  plan.devices = setting.workers() + devices_of_servers(setting.platform, options.place, servers);
  ServerCounts counts;
  counts.mode = strategy.rules.mode;
  counts.updates_a_step =
      counts.mode == ServerRules::Mode::synchronous ? 1 : strategy.updates_a_step * tree.workers;
  if (options.serial) {
    for (const LayerSeconds& layer : plan.workloads.front().median)
      counts.own_seconds += layer.forward + layer.backward + layer.update;
    counts.own_seconds =
        (counts.own_seconds + options.training.step_overhead.value) / strategy.updates_a_step;
  }
  plan.figures = [counts](const Records& records, double seconds) {
    return server_figures(counts, records, seconds);
  };
}

/// Appends the columns of compressed updates.
void add_codec_figures(const ServerStrategy& strategy, const Exchanged& exchanged,
                       const CompressionSeconds& codec, Plan& plan) {
  if (strategy.compression.kind == Compression::none) return;
  plan.figures = [own = plan.figures,
                  more = compression_figures(exchanged.update_share * exchanged.size, codec)](
                     const Records& records, double seconds) {
    Figures figures = own(records, seconds);
    figures.insert(figures.end(), more.begin(), more.end());
    return figures;
  };
}

/// Samples a step of a worker (of each rank of a group), from `batch_per_worker` or `global_batch`.
std::int64_t samples_of_worker(const Setting& setting, const ServerOptions& options) {
  return samples_per_replica(setting, tree_of(setting, options).workers * options.group_size, 1);
}

}  // namespace

Seconds exchange_arithmetic_seconds(const YamlMap& map, const Setting& setting, const ServerOptions& options,
                                    const ExchangeArithmetic& usual) {
  constexpr double kMostArrays = 1000;
  const Workload whole = whole_workload(setting, options, samples_of_worker(setting, options)).workload;
  double arrays = usual.arrays;
  const auto time = setting.measured_time(usual.name);
  if (time && !map.has("local_arrays") && !options.apply_trace)
    arrays = std::min(kMostArrays, *time / array_work(whole, 1));
  return array_work(whole, arrays / options.machines_per_replica);
}

Plan server_plan(const Setting& setting, const ServerOptions& options, const ServerStrategy& strategy) {
  const Tree tree = tree_of(setting, options);
  check_shards(setting, options);
  Exchanged exchanged = exchanged_of(setting, options);
  exchanged.update_share = update_share(strategy.compression, exchanged.size);
  exchanged.codec = strategy.compression.codec(1);
  const CompressionSeconds codec = codec_of(setting, options, strategy, exchanged);
  Plan plan;
  const std::int64_t batch = samples_of_worker(setting, options);
  ServerClient client;
  const TimedWorkload whole = whole_workload(setting, options, batch);
  auto [workload, source] = begin_plan(setting, options, whole, plan, client.batch);
  if (strategy.array_rounds) {
    workload.buckets =
        gradient_buckets(gradient_arrays(setting.model), options.training.element(), kEachArray);
    plan.simulated_only = "rounds of arrays during the backward pass are simulated";
  }
  Server server = server_of(setting, options, strategy, whole, exchanged);
  std::vector<int> shard_of_bucket;
  if (strategy.whole_arrays) shard_of_bucket = servers_of_arrays(workload.buckets, tree.shards);
  server.restore = {"restore", codec.restore / options.shards, {}};
  client.quantize = {"quantize", codec.quantize / options.machines_per_replica, {}};
  client.array = array_work(workload, 1);
  plan.workloads.push_back(std::move(workload));

  add_group(setting, options, exchanged, plan, client.batch);
  for (const RankId rank : first_ranks(setting.workers())) {
    client.servers = servers_of(tree, options, exchanged, rank);
    client.servers.shard_of_bucket = shard_of_bucket;
    plan.roles.push_back({"worker", rank, 1, 0, true, strategy.program(client)});
  }
  add_servers({tree, options, strategy, exchanged, server}, plan);
  for (const int place :
       server_places(setting, options.place, tree.shards + tree.sub_masters, *options.place_at))
    plan.endpoints.push_back(place);
  add_numbers(setting, options, strategy, tree, plan);
  add_codec_figures(strategy, exchanged, codec, plan);
  const int counted = tree.workers - strategy.backup_workers;
  finish_plan(setting, options.training,
              {std::move(source), batch, 1.0 * batch * options.group_size * counted,
               memory_of(setting, options, strategy, batch), no_arithmetic(options), 1,
               strategy.compression.kind != Compression::none},
              plan);
  if (!strategy.compression.flag.empty()) plan.flags.push_back(strategy.compression.flag);
  if (options.apply_trace) {
    const std::vector<std::string>& doubts = setting.named_trace(*options.apply_trace).flags;
    plan.flags.insert(plan.flags.end(), doubts.begin(), doubts.end());
  }
  return plan;
}

namespace {

const std::vector<double>& list(const Records& records, const char* name) {
  static const std::vector<double> none;
  const auto found = records.find(name);
  return found == records.end() ? none : found->second;
}

double sum(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0);
}

void add_utilization(const Records& records, const std::string& who, Figures& figures) {
  const double busy = sum(list(records, (who + "_busy").c_str()));
  const double idle = sum(list(records, (who + "_idle").c_str()));
  if (busy + idle > 0) figures.emplace_back(who + "_utilization", busy / (busy + idle));
}

/// Staleness of updates that are not the first of their worker; of all updates if there are no others.
const std::vector<double>& later_updates(const Records& records) {
  const auto& later = list(records, "staleness");
  return later.empty() ? list(records, "first_staleness") : later;
}

void add_staleness(std::vector<double> staleness, Figures& figures) {
  if (staleness.empty()) return;
  const double count = staleness.size();
  const auto p95 = staleness.begin() + static_cast<std::ptrdiff_t>(std::ceil(0.95 * count)) - 1;
  std::nth_element(staleness.begin(), p95, staleness.end());
  figures.emplace_back("staleness_mean",
                       sum(staleness) / count);  // whole numbers: any order gives the same sum
  figures.emplace_back("staleness_p95", *p95);
  figures.emplace_back("staleness_max", *std::max_element(p95, staleness.end()));
}

void add_knee(double own_seconds, double updates, const Records& records, Figures& figures) {
  if (own_seconds <= 0 || updates <= 0) return;
  const double master = sum(list(records, "server_busy")) / updates;
  figures.emplace_back("master_seconds", master);
  if (master > 0) figures.emplace_back("knee_workers", 1 + own_seconds / master);
}

}  // namespace

Figures server_figures(const ServerCounts& counts, const Records& records, double seconds) {
  Figures figures;
  add_staleness(later_updates(records), figures);
  add_utilization(records, "server", figures);
  add_utilization(records, "sub_master", figures);
  figures.emplace_back("updates_per_second", counts.updates_a_step / seconds);
  add_knee(counts.own_seconds, list(records, "applied").size(), records, figures);
  const auto& dropped = list(records, "dropped");
  if (counts.mode == ServerRules::Mode::synchronous) {
    const std::size_t taken = list(records, "staleness").size() + list(records, "first_staleness").size();
    const double all = dropped.size() + taken;
    figures.emplace_back("dropped_share", all > 0 ? dropped.size() / all : 0);
  }
  const auto& lead = list(records, "lead");
  if (!lead.empty()) figures.emplace_back("staleness_lead", *std::max_element(lead.begin(), lead.end()));
  return figures;
}

}  // namespace stepcast
