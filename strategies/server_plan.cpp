#include "strategies/server_plan.hpp"

#include "models/shard.hpp"
#include "strategies/communicator.hpp"
#include "strategies/compression_figures.hpp"
#include "strategies/replica_step.hpp"
#include "strategies/server_figures.hpp"
#include "strategies/server_places.hpp"
#include "strategies/server_roles.hpp"

namespace stepcast {
namespace {

/// What compressing an update takes, and what its shard's server takes to restore it.
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

/// Collectives of the ranks of a worker: weights to all and the sum of gradients where each has samples of
/// its own, meetings where they share the model.
void add_group(const Setting& setting, const ServerOptions& options, const Exchanged& exchanged, Plan& plan,
               MiniBatch& batch) {
  const int ranks = options.group_size * options.machines_per_replica;
  if (ranks == 1) return;
  plan.communicators.push_back(
      communicator(setting.platform, plan.endpoints, first_ranks(setting.workers()), ranks));
  apply(options.communication, plan.communicators.back());
  const bool whole = options.group_size > 1;
  const Bytes size = whole ? exchanged.size : Bytes{};
  const Slice elements = whole ? exchanged.elements : Slice{};
  plan.collectives.push_back({Collective::Kind::broadcast, 0, {Array::parameters, elements, size}, nullptr});
  plan.collectives.push_back({Collective::Kind::all_reduce, 0, {Array::gradients, elements, size}, nullptr});
  batch.share = 0;
  batch.sum = 1;
}

Memory memory_of(const Setting& setting, const ServerOptions& options, const ServerStrategy& strategy,
                 std::int64_t batch) {
  MemoryOptions memory = setting.memory;
  memory.batch = batch;
  if (options.training.mixed) memory.precision = MemoryOptions::Precision::mixed;
  const int machines = options.machines_per_replica;
  Memory held = machines > 1 ? training_memory(partition(setting.model, machines).sharded.part, memory)
                             : training_memory(setting.model, memory);
  held.gradients = held.gradients + strategy.held_arrays * 4 *
                                        static_cast<double>(trainable_parameters(setting.model)) / machines *
                                        Bytes{1};
  return held;
}

/// Times of one rank's mini-batch, and what the machines of its replica tell each other.
Workload workload_of(const Setting& setting, const ServerOptions& options, Plan& plan, MiniBatch& batch) {
  const int machines = options.machines_per_replica;
  if (machines > 1) {
    const std::string problem = partition_problem(setting.model, machines);
    if (!problem.empty()) options.machines_at->refuse(problem);
  }
  const ReplicaStep step = replica_step(setting, machines, plan.batch_per_worker);
  Workload workload = make_workload(setting.model, setting.times(plan.batch_per_worker),
                                    options.training.compute_factor * step.compute_share, plan);
  workload.input = static_cast<double>(plan.batch_per_worker) / machines * setting.sample_size;
  batch.overhead = options.training.step_overhead + step.exchange;
  return workload;
}

std::string no_arithmetic(const ServerOptions& options) {
  if (options.exchanged) return "exchanged: parameters of another size than the model's";
  if (options.machines_per_replica > 1) return "machines_per_replica: a network in parts";
  return options.training.mixed ? "precision: mixed" : "";
}

void add_numbers(const Setting& setting, const ServerOptions& options, const ServerStrategy& strategy,
                 const Tree& tree, Plan& plan) {
  const int servers = tree.shards + tree.sub_masters;
  const int counted = tree.workers - strategy.backup_workers;
  plan.asynchronous = true;
  plan.workers = tree.workers * options.group_size;
  plan.summed_gradients = options.group_size;
  plan.no_arithmetic = no_arithmetic(options);
  plan.devices = setting.workers() + devices_of_servers(setting.platform, options.place, servers);
  plan.load_data = setting.sample_size.value > 0;
  plan.compute_slowdown = options.training.compute_slowdown;
  plan.samples_a_step = static_cast<double>(plan.batch_per_worker) * options.group_size * counted;
  plan.fits = fits(plan.memory, setting.device);
  plan.why_not = why_not(plan.memory, setting.device);
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

}  // namespace

std::int64_t samples_of_worker(const Setting& setting, const ServerOptions& options) {
  return samples_per_replica(setting, setting.workers() / options.machines_per_replica, 1);
}

Plan server_plan(const Setting& setting, const ServerOptions& options, const ServerStrategy& strategy) {
  const Tree tree = tree_of(setting, options);
  check_shards(setting, options);
  Exchanged exchanged = exchanged_of(setting, options);
  exchanged.update_share = update_share(strategy.compression, exchanged.size);
  exchanged.codec = strategy.compression.codec(1);
  const CompressionSeconds codec = codec_of(setting, options, strategy, exchanged);
  Plan plan;
  plan.endpoints = setting.devices;
  plan.batch_per_worker = samples_of_worker(setting, options);
  ServerClient client;
  client.batch.prefetch = setting.prefetch;
  Workload workload = workload_of(setting, options, plan, client.batch);
  Server server = server_of(setting, options, strategy, workload, plan.trace_kind, exchanged);
  server.restore = {"restore", codec.restore / options.shards, {}};
  client.quantize = {"quantize", codec.quantize / options.machines_per_replica, {}};
  plan.workloads.push_back(std::move(workload));

  add_group(setting, options, exchanged, plan, client.batch);
  for (int rank = 0; rank < setting.workers(); ++rank) {
    client.servers = servers_of(tree, options, exchanged, rank);
    plan.roles.push_back({"worker", rank, 1, 0, true, strategy.program(client)});
  }
  add_servers(plan, tree, options, strategy, server, exchanged);
  for (const int place :
       server_places(setting, options.place, tree.shards + tree.sub_masters, *options.place_at))
    plan.endpoints.push_back(place);
  plan.memory = memory_of(setting, options, strategy, plan.batch_per_worker);
  add_numbers(setting, options, strategy, tree, plan);
  if (strategy.compression.kind != Compression::none) {
    plan.figures = [own = plan.figures,
                    more = compression_figures(exchanged.update_share * exchanged.size, codec)](
                       const Records& records, double seconds) {
      Figures figures = own(records, seconds);
      figures.insert(figures.end(), more.begin(), more.end());
      return figures;
    };
  }
  if (!strategy.compression.flag.empty()) plan.flags.push_back(strategy.compression.flag);
  if (options.apply_trace) {
    const std::vector<std::string>& doubts = setting.named_trace(*options.apply_trace).flags;
    plan.flags.insert(plan.flags.end(), doubts.begin(), doubts.end());
  }
  return plan;
}

}  // namespace stepcast
