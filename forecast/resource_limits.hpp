#pragma once

#include <string>

#include "core/typed_numbers.hpp"
#include "scenarios/experiment/experiment.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// What a run may take of the machine.
struct RunLimits {
  int processes = 0;         ///< 0: one per core
  std::string memory_limit;  ///< with a unit; empty: 80 % of the machine's memory
  std::string time_limit;    ///< for all simulations of the largest point, with a unit; empty: 1 h
};

/// The size of a run, known before it starts.
struct RunSize {
  std::size_t points = 0;
  double simulations = 0;  ///< of all points
  int workers = 0;         ///< of the largest point
  Bytes process_memory;    ///< of a process that simulates the largest point
};

/// Memory of one simulation beyond that of an empty process: links, workers, messages and records.
Bytes simulated_memory(const Experiment& experiment);

RunSize run_size(const Experiment& largest, std::size_t points, int simulations);
std::string to_string(const RunSize& size, const std::string& scenario);

/// Throws LimitError if the processes together would need more than the memory limit.
void check_limits(const RunSize& size, const RunLimits& limits);

/// Throws LimitError if `processes` processes of `each` bytes would need more than the limit.
/// @param limit  with a unit; empty: the default of 80 % of the machine's memory
void check_process_memory(Bytes each, int processes, const std::string& limit);

/// Reads `--time-limit`, a time with a unit; empty: the default of 1 h. Throws InputError.
Seconds time_limit(const std::string& text);

/// Processor time of all child processes that have ended [s].
double children_seconds();

/// Estimated processor time of a run. To measure it, up to 8 evenly spread points are simulated with the
/// assumptions in the middle of their ranges, and one draw is calibrated.
/// @param simulations  number of all simulations: points, draws, doubled resources and noise left out
Seconds estimated_time(const Scenario& scenario, const std::vector<std::size_t>& points, Library& library,
                       int draws, double simulations);

/// Estimated processor time of a run with noise, whose workers may each have a program: as if all points were
/// as large as the largest. Nothing is simulated. 0 without noise and for few workers.
Seconds expected_time(const Experiment& largest, const RunSize& size);

/// Text such as "some 12 s of processor time, 6 s with 2 processes".
std::string time_text(Seconds processor_time, int processes);

/// Estimated cost of one simulation.
struct SimulationCost {
  double messages = 0;  ///< number of simulated messages, or of flows in the fidelities fluid and coupled
  Seconds time;         ///< processor time
};
/// The cost of simulating a point; 0 for simulations that certainly take less than ten minutes.
SimulationCost simulation_cost(const Experiment& experiment);

/// Throws LimitError if the simulations of the largest point would take longer than the time limit.
void check_time(const Experiment& largest, const RunSize& size, const RunLimits& limits);

}  // namespace stepcast
