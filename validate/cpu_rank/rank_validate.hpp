#pragma once

#include "runtime/ranks/cluster.hpp"
#include "runtime/scenario_points/validation_plan.hpp"

namespace stepcast {

/// Measures links and contention between ranks; rank 0 writes the rows to links.jsonl. All ranks call it.
/// @param quick  measure only what a forecast needs: no other algorithms, no library, smaller budgets
void rank_calibrate(const RankContext& run, bool quick);

/// A rank's part of `stepcast validate`: measures links, captures traces, waits until the forecast is
/// written, then runs every point several times, in turn. Rank 0 writes links.jsonl, the traces, and
/// samples.jsonl with one row for each run (point, repeat, step_seconds, compute_seconds, disturbance, kept
/// and others).
void rank_validate(const RankContext& run, const ValidationOptions& options);

}  // namespace stepcast
