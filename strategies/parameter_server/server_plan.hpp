#pragma once

#include <memory>
#include <vector>

#include "strategies/model_parallel/layer_segments.hpp"
#include "strategies/parameter_server/server_options.hpp"
#include "strategies/plan/plan.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {

/// Workers whose networks are partitioned over several machines, as under `kind: model_parallel`. Every
/// machine is a rank with a program of its own. The passes of a mini-batch stop at each exchange of the
/// machines of a replica, so the slowest of them decides.
struct MachineReplicas {
  /// Begun: communicator 0 has the machines of each replica, and the collectives are those of the passes.
  Plan plan;
  TimedWorkload part;  ///< of the machine with the largest part
  std::shared_ptr<const PassSegments> passes;
};

/// @throws InputError at `machines_per_replica` for a network that cannot be partitioned like this
MachineReplicas machine_replicas(const Setting& setting, const ServerOptions& options);

/// Endpoints of the servers. own_device: free devices in order; own_host: the hosts of free nodes, one server
/// each; colocated: the hosts of the workers' nodes, evenly.
/// @throws InputError at `at` if there are too few
std::vector<int> server_places(const Setting& setting, ServerOptions::Place place, int servers,
                               const YamlValue& at);

/// Place of the server that holds each bucket whole: in the network's order, the one that holds the fewest
/// bytes so far. Source: TensorFlow, tf.contrib.training.GreedyLoadBalancingStrategy with byte_size_load_fn.
std::vector<int> servers_of_arrays(const std::vector<Bucket>& buckets, int servers);

/// @throws InputError for `server: colocated` with more shards than workers
void check_shards(const Setting& setting, const ServerOptions& options);

/// Devices that servers occupy.
int devices_of_servers(const Platform& platform, ServerOptions::Place place, int servers);

/// Options that all servers and sub-masters of a plan have in common.
Server server_of(const Setting& setting, const ServerOptions& options, const ServerStrategy& strategy,
                 const TimedWorkload& whole, const Exchanged& exchanged);

/// The servers of a plan.
struct ServerTree {
  const Tree& tree;
  const ServerOptions& options;
  const ServerStrategy& strategy;
  const Exchanged& exchanged;
  const Server& like;  ///< from server_of
};

/// Adds a role for each shard, then for each sub-master, with its clients and its arithmetic.
void add_servers(const ServerTree& servers, Plan& plan);

/// A worker's own arithmetic in an exchange.
struct ExchangeArithmetic {
  const char* name;  ///< see TimedArithmetic
  double arrays;     ///< of all parameters that it reads and writes
};

/// Time of a worker's own arithmetic in an exchange, on its device. A measured time overrides the usual
/// arrays where the mapping has no key `local_arrays`.
Seconds exchange_arithmetic_seconds(const YamlMap& map, const Setting& setting, const ServerOptions& options,
                                    const ExchangeArithmetic& usual);

/// A plan with a role for each rank of each worker, then for each shard, then for each sub-master. A worker
/// is consecutive ranks. Worker i belongs to sub-master i mod sub_masters.
/// @throws InputError for servers that do not fit the platform, and groups that do not divide the workers
Plan server_plan(const Setting& setting, const ServerOptions& options, const ServerStrategy& strategy);

/// Facts of a plan that the columns need.
struct ServerCounts {
  ServerRules::Mode mode{};
  double own_seconds =
      0;  ///< a worker's time between two updates; 0: the server is not serial and has no knee
  double updates_a_step =
      1;  ///< updates of all workers when each takes a step; an update to several shards counts once
};

/// Columns: staleness_mean, staleness_p95, staleness_max (updates of others that were applied between a
/// worker's read and its own update; first updates count only if there are no others), server_utilization,
/// updates_per_second, and by mode dropped_share and staleness_lead.
Figures server_figures(const ServerCounts& counts, const Records& records, double seconds);

}  // namespace stepcast
