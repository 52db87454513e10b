#include "sim/workers/simulate.hpp"

#include <utility>

#include "sim/workers/run_programs.hpp"

namespace stepcast {
namespace {

constexpr double kCloseEnough = 0.005;      // share of a run's time that contention may account for
constexpr double kSecondsPerWork = 0.2e-6;  // processor time of a unit of MaxMinSharing::work

/// The share by which a run takes longer than with every collective at its lower bound. A rough fidelity and
/// a rough folding can be wrong only about how collectives slow each other down, so this share bounds their
/// error.
double contention_share(const Simulation& simulation, PlannedCollectives& collectives,
                        const SimulationResult& result) {
  Simulation lower_bound = simulation;
  lower_bound.timeline = false;
  collectives.network().use_lower_bounds(true);
  const double least = run_programs(lower_bound, collectives).seconds;
  collectives.network().use_lower_bounds(false);
  return least > 0 ? result.seconds / least - 1 : 0;
}

void set_close(Accuracy& accuracy) {
  if (accuracy == Accuracy::rough) accuracy = Accuracy::close;
}

/// A run with the fidelity and folding that the rules choose for a small budget.
struct CheapRun {
  SimulationResult result;
  bool close = true;
};

CheapRun cheap_run(const Simulation& simulation, const Topology& topology) {
  PlannedCollectives collectives(simulation, topology);
  CheapRun run{run_programs(simulation, collectives)};
  // A run that learns changes the values in memory, so it cannot be repeated.
  if (!collectives.may_be_inaccurate() || !simulation.memories.empty()) return run;
  run.close = contention_share(simulation, collectives, run.result) <= kCloseEnough;
  if (!run.close) return run;
  set_close(run.result.fidelity.accuracy);
  set_close(run.result.folding.accuracy);
  return run;
}

}  // namespace

// A point is simulated up to three times. The first run uses the cheapest fidelity and folding that the rules
// allow. If the rules do not know whether these are accurate, a second run with all collectives at their
// lower bounds shows how much contention can matter: at most 0.5 %, and the first result is called close.
// Otherwise a third run simulates every message, if a large budget (kLargeBudgetPerRun) is estimated to
// suffice; its result replaces the first one unless it exceeds that budget.
SimulationResult simulate(const Simulation& simulation) {
  const Topology topology(*simulation.platform);
  CheapRun cheap = cheap_run(simulation, topology);
  if (cheap.close) return std::move(cheap.result);
  PlannedCollectives every_message(simulation, topology, ComputeBudget::large);
  if (every_message.may_be_inaccurate()) return std::move(cheap.result);
  every_message.network().limit_work(static_cast<std::int64_t>(kLargeBudgetPerRun / kSecondsPerWork));
  try {
    return run_programs(simulation, every_message);
  } catch (const MaxMinSharing::TooMuchWork&) {
    return std::move(cheap.result);
  }
}

}  // namespace stepcast
