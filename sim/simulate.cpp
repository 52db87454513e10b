#include "sim/simulate.hpp"

#include <algorithm>

#include "sim/play_run.hpp"

namespace stepcast {
namespace {

constexpr double kCloseEnough = 0.005;    // of a run: what its shortest play may leave open
constexpr double kSecondsAWork = 0.2e-6;  // MaxMinLinks::work

/// How much longer a run takes than with everything in the least time that it could take, as a share. All
/// that a rough form or rough folding can get wrong is how collectives hold each other up.
double left_open(const Simulation& simulation, Collectives& traffic, const SimulationResult& played) {
  Simulation shortest = simulation;
  shortest.timeline = false;
  traffic.network().play_shortest(true);
  const double least = play_run(shortest, traffic).seconds;
  traffic.network().play_shortest(false);
  return least > 0 ? played.seconds / least - 1 : 0;
}

void call_close(std::string& name) {
  if (name.ends_with(", roughly")) name.replace(name.rfind(", "), std::string::npos, ", closely");
}

/// By the cheap rules.
struct Attempt {
  SimulationResult result;
  bool close = true;
};

Attempt attempt(const Simulation& simulation, const Topology& topology) {
  Collectives traffic(simulation, topology);
  Attempt made{play_run(simulation, traffic)};
  // A run that learns moves values, which can be done once only.
  if (!traffic.may_be_off() || !simulation.memories.empty()) return made;
  const double open = left_open(simulation, traffic, made.result);
  made.close = open <= kCloseEnough;
  if (!made.close) return made;
  call_close(made.result.form);
  call_close(made.result.folding);
  return made;
}

}  // namespace

SimulationResult simulate(const Simulation& simulation) {
  const Topology topology(*simulation.platform);
  Attempt made = attempt(simulation, topology);
  if (made.close) return std::move(made.result);
  Collectives patient(simulation, topology, Patience::much);
  if (patient.may_be_off()) return std::move(made.result);
  patient.network().limit_work(static_cast<std::int64_t>(kMuchARun / kSecondsAWork));
  try {
    return play_run(simulation, patient);
  } catch (const MaxMinLinks::TooMuchWork&) {
    return std::move(made.result);
  }
}

}  // namespace stepcast
