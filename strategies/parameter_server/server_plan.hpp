#pragma once

#include <string>

#include "strategies/parameter_server/server_options.hpp"
#include "strategies/plan/setting.hpp"

namespace stepcast {

/// Time of a worker's own arithmetic in an exchange, on its device.
/// @param arrays  arrays of all parameters that it reads and writes; the key `local_arrays` overrides it
Seconds exchange_arithmetic_seconds(const YamlMap& map, const Setting& setting, const ServerOptions& options,
                                    double arrays);

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
