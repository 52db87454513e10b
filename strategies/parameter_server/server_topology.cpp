#include "strategies/parameter_server/server_topology.hpp"

#include <fmt/format.h>

#include <cmath>

#include "models/layer_times/trace.hpp"

namespace stepcast {
namespace {

/// Time of the update of the whole model in a named trace.
Seconds named_update(const Setting& setting, const YamlValue& name) {
  const Trace& trace = setting.named_trace(name);
  if (trace.model != setting.model.name)
    name.refuse(fmt::format("expected a trace of model {}, got one of {}", setting.model.name, trace.model));
  Seconds sum;
  for (const LayerTrace& layer : trace.layers) sum += median(layer.update.seconds);
  return sum;
}

}  // namespace

Tree tree_of(const Setting& setting, const ServerOptions& options) {
  Tree tree;
  tree.ranks = options.group_size * options.machines_per_replica;
  tree.shards = options.shards;
  tree.sub_masters = options.sub_masters;
  tree.workers = setting.workers() / tree.ranks;
  if (setting.workers() % tree.ranks != 0 || tree.workers == 0) {
    const auto& at = options.group_size > 1 ? options.group_at : options.machines_at;
    at->refuse(
        fmt::format("{} devices cannot form workers of {}; give a divisor", setting.workers(), tree.ranks));
  }
  if (options.shards % options.machines_per_replica != 0) {
    const std::string problem =
        fmt::format("{} shards cannot be assigned evenly to the {} machines of a replica; give a multiple",
                    options.shards, options.machines_per_replica);
    (options.shards_at ? *options.shards_at : *options.machines_at).refuse(problem);
  }
  if (tree.sub_masters > tree.workers) {
    options.sub_masters_at->refuse(fmt::format(
        "{} sub-masters for {} workers; give at most one for each worker", tree.sub_masters, tree.workers));
  }
  return tree;
}

Exchanged exchanged_of(const Setting& setting, const ServerOptions& options) {
  Exchanged exchanged;
  exchanged.size = options.exchanged.value_or(static_cast<double>(trainable_parameters(setting.model)) *
                                              options.training.element());
  exchanged.arrays = options.arrays.value_or(static_cast<int>(gradient_tensors(setting.model)));
  if (!options.exchanged) exchanged.elements.end = trainable_parameters(setting.model);
  return exchanged;
}

Shard share_of(const Exchanged& exchanged, const ServerOptions& options, int index, int role) {
  Shard shard{role, exchanged.size / options.shards, 1, {}};
  shard.update = exchanged.update_share * shard.size;
  shard.codec = exchanged.codec;
  const std::int64_t all = exchanged.elements.size();
  shard.elements = {part_begin(all, options.shards, index), part_begin(all, options.shards, index + 1)};
  if (options.by_array)
    shard.parts = static_cast<int>(std::ceil(static_cast<double>(exchanged.arrays) / options.shards));
  return shard;
}

Seconds array_seconds(const Setting& setting, const ServerOptions& options, const Workload& whole,
                      const std::string& trace_kind, const Exchanged& exchanged) {
  if (options.apply_time) return *options.apply_time / options.apply_arrays;
  if (options.apply_trace) return {named_update(setting, *options.apply_trace).value / kUpdateArrays};
  const bool measured = setting.device.is_processor() && trace_kind.starts_with("captured");
  if (options.place == ServerOptions::Place::own_device || measured) return array_work(whole, 1);
  return exchanged.size / setting.platform.node.memory.bandwidth;
}

Seconds server_work(const ServerOptions& options, Seconds array, double arrays) {
  return arrays / options.shards * array;
}

int rank_for(const Tree& tree, const ServerOptions& options, int worker, int shard) {
  return worker * tree.ranks + shard / (tree.shards / options.machines_per_replica);
}

Servers servers_of(const Tree& tree, const ServerOptions& options, const Exchanged& exchanged, int rank) {
  Servers servers;
  servers.serial = options.serial;
  const int worker = rank / tree.ranks;
  if (tree.sub_masters > 0) {
    if (rank % tree.ranks == 0)
      servers.shards.push_back(
          share_of(exchanged, options, 0, tree.first_sub_master() + worker % tree.sub_masters));
    return servers;
  }
  for (int shard = 0; shard < tree.shards; ++shard) {
    if (rank_for(tree, options, worker, shard) == rank)
      servers.shards.push_back(share_of(exchanged, options, shard, tree.first_shard() + shard));
  }
  return servers;
}

}  // namespace stepcast
