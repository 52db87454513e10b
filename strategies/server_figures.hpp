#pragma once

#include "strategies/plan.hpp"
#include "strategies/server_ledger.hpp"

namespace stepcast {

/// What the columns of a plan with servers need to know.
struct ServerCounts {
  ServerRules::Mode mode{};
  double own_seconds = 0;  ///< of a worker between two updates; 0: the server is not serial, and has no knee
  double updates_a_step = 1;  ///< of all workers, when each takes a step; each shard's part counts once
};

/// staleness_mean, staleness_p95, staleness_max [updates of others applied between a worker's read and its
/// own update; of its first update only where no worker made another], server_utilization,
/// updates_per_second; where they happen dropped_share and staleness_lead.
Figures server_figures(const ServerCounts& counts, const Records& records, double seconds);

}  // namespace stepcast
