#include "strategies/parameter_server/machine_replicas.hpp"

#include "models/cost/cost.hpp"
#include "models/partition/layer_partition.hpp"
#include "strategies/model_parallel/group_plan.hpp"

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
  add_exchanges(layers, groups);
  add_halos(setting, partitioned.spatial, groups);
  return groups;
}

}  // namespace

MachineReplicas machine_replicas(const Setting& setting, const ServerOptions& options) {
  const LayerRange layers{0, static_cast<int>(setting.model.layers.size())};
  GroupPlan groups = exchanging_groups(setting, options, layers);
  // Filters that all machines of a replica hold, which DistBelief's networks do not have.
  const auto sums = sums_by_layer(add_sums(layers, true, groups.group, groups), setting.model.layers.size());
  const bool overlap = groups.options.halo_overlap;

  MachineReplicas replicas;
  replicas.passes = std::make_shared<const PassSegments>(make_passes(groups.calls, layers, sums, overlap));
  const Trace times = part_times(setting, groups);
  Workload& workload = replicas.part.workload;
  workload = segmented_workload(times, layer_costs(groups.sharded.part, setting.device.choice()),
                                setting.device, groups.calls, overlap);
  scale(workload, options.training.compute_factor);
  workload.input =
      static_cast<double>(groups.micro_batch) / options.machines_per_replica * setting.sample_size;
  replicas.part.source = source_of_part(groups, times);
  replicas.plan = std::move(groups.plan);
  replicas.plan.communicators.resize(1);  // no message of machines of different replicas
  replicas.plan.sharing = groups.sharing;
  replicas.plan.sharing.micro_batch = groups.micro_batch;
  return replicas;
}

}  // namespace stepcast
