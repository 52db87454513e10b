#pragma once

#include "campaigns/schedule.hpp"
#include "report/results/results.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "sim/simulation.hpp"

namespace stepcast {

/// Adds the columns of a campaign, which docs/reference/campaigns.md lists. @param points  that it evaluates
void set_campaign_columns(Row& row, const CampaignTimes& times, int points);

/// Adds the columns of `faults:` and `campaign:` to a row that has its step time (docs/reference/faults.md,
/// docs/reference/campaigns.md). If the scenario has both, each training of the campaign lasts as long as
/// with faults.
void set_training_columns(Row& row, const Experiment& experiment);

/// A resource that is doubled to measure its effect on the step time. Latency is halved instead.
enum class Doubled { none, compute, bandwidth, latency };
const char* to_string(Doubled resource);

/// The simulation of an experiment. It refers to the experiment, which must outlive it.
Simulation simulation_of(const Experiment& experiment, Doubled doubled);

/// Simulates an experiment in this process and returns its result columns. A process can make one call (see
/// Engine).
/// @param automatic  receives the algorithms that `all_reduce: automatic` came to if it is not null
Row simulate_point(const Experiment& experiment, Doubled doubled, AllReduceChoices* automatic = nullptr);

}  // namespace stepcast
