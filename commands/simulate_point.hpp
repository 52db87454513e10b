#pragma once

#include "core/timeline.hpp"
#include "report/results.hpp"
#include "scenarios/experiment.hpp"
#include "sim/simulate.hpp"

namespace stepcast {

/// A resource that is doubled to see what it would bring; latency is halved.
enum class Doubled { none, compute, bandwidth, latency };
const char* to_string(Doubled resource);

/// What is simulated; refers to the experiment.
Simulation simulation_of(const Experiment& experiment, Doubled doubled);

/// Simulates an experiment in this process and returns its result columns. Call it once a process (Engine).
/// @param timeline  filled where it is not null
Row simulate_point(const Experiment& experiment, Doubled doubled, Timeline* timeline = nullptr);

}  // namespace stepcast
