#pragma once

#include <vector>

#include "forecast/forecast_options.hpp"
#include "report/results/manifest.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// The shard that these options ask for.
ShardRun shard_of(const Scenario& scenario, const RunOptions& options, const Manifest& manifest);

/// Refuses shards that do not belong together: of other versions, scenarios or options. @throws InputError
void check_same_run(const std::vector<ShardRun>& shards);

/// Refuses a shard whose input files have changed since. Files are compared by role, name and content, so
/// that they may lie in other folders now. @throws InputError
void check_same_inputs(const ShardRun& shard, const Manifest& now);

}  // namespace stepcast
