#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "forecast/processes/journal.hpp"
#include "forecast/simulations.hpp"
#include "report/results/results.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

struct ForecastOptions {
  int processes = 1;                ///< number of simulations at the same time
  int draws = 0;                    ///< number of draws of the assumptions; 0: the default of draw_count
  std::vector<std::size_t> points;  ///< points of the scenario that are simulated
  std::map<std::size_t, std::string> failed = {};  ///< points that cannot be built, with the reason
  /// File of finished simulations, one per line; existing ones are not repeated.
  std::filesystem::path journal;
  bool part = false;         ///< the points are a shard's: all of them may fail
  bool what_if = true;       ///< also simulate without noise (extra_simulations)
  bool discrepancy = false;  ///< errors of the model itself may explain differences to measurements
  bool progress = false;     ///< show progress on standard error
  /// Called with each point's row of the first draw as soon as the row is known. An exception ends the
  /// forecast.
  std::function<void(std::size_t point, const Row& row)> inspect = {};
  /// Logarithm of the likelihood of what was measured besides the scenario's measurements, by the experiment
  /// of the first point in a draw; empty if nothing was.
  std::function<double(const Experiment&)> log_likelihood = {};
};

/// The number of draws of a scenario's assumptions: `asked`, or if that is 0 as many as its intervals and the
/// shares of the variance need (docs/notes/2026-11-discrepancy.md); 1 without assumptions.
int draw_count(const Scenario& scenario, int asked);

/// The values of all assumptions in [0, 1) for a draw: a point of Sobol's sequence, which fills the unit cube
/// evenly; the first draw is the middle. Source: I. Sobol, USSR Comput. Math. Math. Phys. 7 (1967);
/// Boost.Random implements it.
std::vector<double> low_discrepancy(std::size_t draw, std::size_t dimensions);

/// Number of additional simulations per point that show the effect of noise.
int extra_simulations(const Scenario& scenario);

/// Simulates every point for every draw. With `what_if` it also simulates every point
/// without its noise. A point whose simulation fails is noted in `failed`, and the others go on.
/// @throws InputError, LimitError, std::runtime_error  the failure of the first point if every point fails
Simulations forecast(const Scenario& scenario, Library& library, const ForecastOptions& options);

/// The same simulations from the journals of all shards; nothing is simulated.
/// @throws InputError if simulations are missing, with the names of their points
Simulations collected(const Scenario& scenario, Journal journal, const ForecastOptions& options);

/// One simulation: a point in one draw, or a point in the first draw without noise.
struct Job {
  std::size_t point = 0;
  std::size_t draw = 0;
  Without without = Without::nothing;
};

/// The name of a simulation in the journal.
std::string name_of(const Scenario& scenario, const Job& job);

/// All points in the first of these draws, so that mistakes in a scenario surface early; with `what_if` then
/// each point without its noise; then all points in all other draws.
std::vector<Job> jobs_of(const Scenario& scenario, const ForecastOptions& options,
                         const std::vector<std::size_t>& draws);

/// True if the simulation does not change the noise.
bool is_forecast(const Job& job);

/// Puts the row of a simulation into the list where it belongs.
void store(Simulations& all, const Job& job, Row row);

}  // namespace stepcast
