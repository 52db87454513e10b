#pragma once

#include <map>

#include "campaigns/schedule.hpp"
#include "report/results/results.hpp"
#include "report/statistics/statistics.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/scenario.hpp"
#include "sim/simulation.hpp"
#include "strategies/plan/run_conditions.hpp"

namespace stepcast {

/// Adds the columns of a campaign, which docs/reference/campaigns.md lists. @param points  that it evaluates
void set_campaign_columns(Row& row, const CampaignTimes& times, int points);

/// Adds the columns of `faults:` and `campaign:` to a row that has its step time (docs/reference/faults.md,
/// docs/reference/campaigns.md). If the scenario has both, each training of the campaign lasts as long as
/// with faults.
void set_training_columns(Row& row, const Experiment& experiment);

/// Sets the rates, the memory, and the hours, energy and price of a training of a row that has its step time.
void set_totals(Row& row, const Experiment& experiment);

/// The simulation of an experiment. It refers to the experiment, which must outlive it.
Simulation simulation_of(const Experiment& experiment);

/// Simulates an experiment in this process and returns its result columns. A process can make one call (see
/// Engine).
/// @param automatic  receives the algorithms that `all_reduce: automatic` came to if it is not null
/// @param statistic  makes step_seconds, its parts and the rate of the simulated steps
Row simulate_point(const Experiment& experiment, AllReduceChoices* automatic = nullptr,
                   StepStatistic statistic = StepStatistic::median);

/// Makes `compute_seconds` equal to `step_seconds` if it is longer by rounding alone. Sums of many parts
/// round, and no step is shorter than its compute.
void remove_rounding_of_compute(Row& row);

/// Noise that a simulation leaves out to measure its cost. `noise` stands for jitter and stragglers.
enum class Without { nothing, jitter, noise };

/// True if leaving out this noise can change a point, because the scenario sets its key: noise.jitter for
/// Without::jitter, noise.straggler_share or noise.stragglers for Without::noise.
bool may_change(const Scenario& scenario, Without what);

/// Removes noise. Returns true if that changes the simulation: there is jitter (Without::jitter), or there
/// are stragglers (Without::noise).
bool leave_out(Without what, Noise& noise);

/// Adds the columns jitter_seconds (step time minus step time without jitter) and straggler_seconds (step
/// time without jitter minus step time without jitter and stragglers). For a training with faults it also
/// adds these times summed over all steps: lost_to_jitter_seconds and lost_to_stragglers_seconds.
/// @param with     row of the simulation with all its noise
/// @param without  rows of simulations without noise; those that would not differ are missing
void add_noise_losses(Row& row, const Row& with, const std::map<Without, Row>& without);

}  // namespace stepcast
