#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "models/cost/cost.hpp"
#include "models/partition/layer_partition.hpp"
#include "strategies/arithmetic/model_updates.hpp"
#include "strategies/compression/gradient_compression.hpp"
#include "strategies/model_parallel/group_plan.hpp"
#include "strategies/parameter_server/server_plan.hpp"

namespace stepcast {

namespace {

GroupPlan exchanging_groups(const Setting& setting, const ServerOptions& options, LayerRange layers) {
  const int machines = options.machines_per_replica;
  const YamlValue& where = *options.machines_at;
  GroupOptions shared;
  shared.training = options.training;
  shared.communication = options.communication;
  refuse_if(partition_problem(setting.model, machines), where);
  GroupPlan groups = begin_groups(setting, shared, machines, where);
  set_samples(setting, setting.workers() / machines, groups);
  PartitionedModel partitioned = partition(setting.model, machines);
  groups.sharded = std::move(partitioned.sharded);
  groups.captured_trace = options.part_trace;
  add_exchanges(layers, groups);
  add_halos(setting, partitioned.spatial, layers, {groups.group, LocalFilters::own_positions}, groups);
  return groups;
}

}  // namespace

MachineReplicas machine_replicas(const Setting& setting, const ServerOptions& options) {
  const int machines = options.machines_per_replica;
  const LayerRange layers{0, static_cast<int>(setting.model.layers.size())};
  GroupPlan groups = exchanging_groups(setting, options, layers);
  // Filters that all machines of a replica hold, which DistBelief's networks do not have.
  const auto sums =
      sums_by_layer(add_sums(layers, true, groups.group, {groups.element, groups.options.bucket}, groups),
                    setting.model.layers.size());
  const bool overlap = groups.options.halo_overlap;

  const std::int64_t held_parameters = trainable_parameters(groups.sharded.part);
  MachineReplicas replicas;
  replicas.passes = std::make_shared<const PassSegments>(make_passes(groups.calls, layers, sums, overlap));
  const Trace times = part_times(setting, groups);
  Workload& workload = replicas.part.workload;
  workload = segmented_workload(times, layer_costs(groups.sharded.part, setting.device.choice()),
                                setting.device, groups.calls, overlap);
  scale(workload, options.training.compute_factor);
  workload.input = 1.0 * groups.micro_batch / machines * setting.sample_size;
  replicas.part.source = source_of_part(groups, times);
  replicas.plan = std::move(groups.plan);
  replicas.plan.communicators.resize(1);  // no message of machines of different replicas
  ModelPartition& division = replicas.plan.partition;
  division = machine_partition(setting.model, machines, groups.options, groups.micro_batch);
  division.form = ModelPartition::Form::machines;
  if (division.simulated_only.empty() && held_parameters * machines != trainable_parameters(setting.model))
    division.simulated_only = "machines whose parts of the parameters are not equal";
  return replicas;
}

namespace {

std::vector<int> free_devices(const Setting& setting) {
  const std::set<int> taken(setting.devices.begin(), setting.devices.end());
  std::vector<int> free;
  for (int device = 0; device < setting.platform.devices(); ++device) {
    if (taken.count(device) == 0) free.push_back(device);
  }
  return free;
}

std::vector<int> free_hosts(const Setting& setting) {
  std::set<int> taken;
  for (const int device : setting.devices) taken.insert(setting.platform.node_of(device));
  std::vector<int> free;
  for (int node = 0; node < setting.platform.nodes; ++node) {
    if (taken.count(node) == 0) free.push_back(setting.platform.host_endpoint(node));
  }
  return free;
}

std::vector<int> hosts_of_workers(const Setting& setting, int servers) {
  std::vector<int> hosts;
  for (int i = 0; i < servers; ++i) {
    const auto worker = i * setting.devices.size() / servers;
    hosts.push_back(setting.platform.host_endpoint(setting.platform.node_of(setting.devices[worker])));
  }
  return hosts;
}

}  // namespace

std::vector<int> servers_of_arrays(const std::vector<Bucket>& buckets, int servers) {
  std::vector<double> held(servers, 0);
  std::vector<int> places(buckets.size(), 0);
  for (std::size_t i = buckets.size(); i-- > 0;) {  // the first bucket is the network's last
    const auto least = std::min_element(held.begin(), held.end());
    *least += buckets[i].gradient.value;
    places[i] = least - held.begin();
  }
  return places;
}

void check_shards(const Setting& setting, const ServerOptions& options) {
  if (options.place != ServerOptions::Place::colocated || options.shards <= setting.workers()) return;
  options.shards_at->refuse(
      fmt::format("{} shards on the hosts of {} workers; give at most one for each worker", options.shards,
                  setting.workers()));
}

std::vector<int> server_places(const Setting& setting, ServerOptions::Place place, int servers,
                               const YamlValue& at) {
  if (place == ServerOptions::Place::colocated) return hosts_of_workers(setting, servers);
  const bool device = place == ServerOptions::Place::own_device;
  std::vector<int> free = device ? free_devices(setting) : free_hosts(setting);
  if (std::ssize(free) < servers) {
    at.refuse(
        fmt::format("{} servers need a {} each in addition to {} workers, but {} of platform {} {} free; set "
                    "platform.nodes, or server: colocated",
                    servers, device ? "device" : "node", setting.workers(), free.size(),
                    setting.platform.name, free.size() == 1 ? "is" : "are"));
  }
  free.resize(servers);
  return free;
}

int devices_of_servers(const Platform& platform, ServerOptions::Place place, int servers) {
  if (place == ServerOptions::Place::own_device) return servers;
  return place == ServerOptions::Place::own_host ? servers * platform.devices_per_node : 0;
}

namespace {

/// The strategy's `apply`, with the number of gradients in an update.
Arithmetic apply_arithmetic(const ServerOptions& options, const ServerStrategy& strategy,
                            const Server& server) {
  const bool rounds = strategy.rules.mode == ServerRules::Mode::synchronous;
  const int summed = options.group_size * (rounds ? server.rules.take : 1);
  return [apply = strategy.apply, elements = server.elements, summed](Arrays& arrays) {
    apply(arrays, elements, summed);
  };
}

void add_gradients(Arrays& arrays) {
  accumulate(arrays.of(Array::update), arrays.of(Array::gradients));
}

/// Restores a compressed update into `update`.
Arithmetic restore_update(const Codec& codec, const Slice& elements) {
  return [codec, elements](Arrays& arrays) {
    arrays.compressed(codec, elements).restore(arrays.of(Array::update, elements));
  };
}

void add_role(Plan& plan, const char* name, Server server) {
  Role role{name, RankId(plan.roles.size()), 1, -1, false, {}};
  role.program = [options = std::make_shared<const Server>(std::move(server))](Worker& worker) {
    return serve(worker, *options);
  };
  plan.roles.push_back(std::move(role));
}

}  // namespace

Server server_of(const Setting& setting, const ServerOptions& options, const ServerStrategy& strategy,
                 const TimedWorkload& whole, const Exchanged& exchanged) {
  const Seconds array = array_seconds(setting, options, whole.workload, whole.source.kind, exchanged);
  ServerOptions part = options;
  if (strategy.whole_arrays) part.shards = 1;  // work on an array is its share of that on the whole network
  Server server;
  server.rules = strategy.rules;
  server.serial = options.serial;
  server.answer_first = strategy.answer_first;
  server.array = server_work(part, array, 1);
  server.apply = {"apply", server_work(part, array, options.apply_arrays), {}};
  if (strategy.rules.mode == ServerRules::Mode::synchronous)
    server.add = {"add", server_work(part, array, 3), add_gradients};  // reads 2, writes 1
  const Shard share = share_of(exchanged, part, 0, {});
  server.size = share.size;
  server.parts = share.parts;
  return server;
}

void add_servers(const ServerTree& servers, Plan& plan) {
  const auto& [tree, options, strategy, exchanged, like] = servers;
  for (int shard = 0; shard < tree.shards; ++shard) {
    Server server = like;
    server.leaf = tree.sub_masters == 0;
    if (!server.leaf) server.restore = {};  // sub-masters send updates uncompressed
    server.validate_every = shard == 0 ? options.validate_every : 0;
    server.validation = options.validation;
    for (int child = 0; child < (server.leaf ? tree.workers : tree.sub_masters); ++child) {
      // Every rank has a role of its own, so a rank and its role have the same number.
      server.rules.clients.emplace_back(server.leaf ? rank_for(tree, options, child, shard).value
                                                    : tree.first_sub_master() + child);
    }
    server.rules.take = server.rules.clients.size() - strategy.backup_workers;
    server.elements =
        strategy.whole_arrays ? exchanged.elements : share_of(exchanged, options, shard, {}).elements;
    server.apply.run = apply_arithmetic(options, strategy, server);
    if (strategy.array_rounds)
      server.apply_slice = [apply = strategy.apply, take = server.rules.take](
                               Arrays& arrays, const Slice& elements) { apply(arrays, elements, take); };
    if (server.leaf && exchanged.codec.kind != Compression::none)
      server.restore.run = restore_update(exchanged.codec, server.elements);
    add_role(plan, "server", std::move(server));
  }
  for (int i = 0; i < tree.sub_masters; ++i) {
    Server server = like;
    server.top = false;
    server.parent.serial = options.serial;
    server.parent.shards.push_back(share_of(exchanged, options, 0, RoleId(tree.first_shard())));
    server.parent.shards.back().update = server.parent.shards.back().size;
    server.parent.shards.back().codec = {};
    server.elements = server.parent.shards.front().elements;
    server.parent_every = options.sub_master_every;
    server.pull = strategy.pull;
    for (int worker = i; worker < tree.workers; worker += tree.sub_masters)
      server.rules.clients.emplace_back(worker * tree.ranks);
    server.rules.take = server.rules.clients.size();
    server.apply.run = apply_arithmetic(options, strategy, server);
    if (exchanged.codec.kind != Compression::none)
      server.restore.run = restore_update(exchanged.codec, server.elements);
    add_role(plan, "sub-master", std::move(server));
  }
}

}  // namespace stepcast
