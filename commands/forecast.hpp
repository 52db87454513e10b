#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <vector>

#include "commands/noise_losses.hpp"
#include "commands/simulate_point.hpp"
#include "report/results.hpp"
#include "scenarios/library.hpp"
#include "scenarios/scenario.hpp"

namespace stepcast {

struct ForecastOptions {
  int processes = 1;
  int draws = 64;                   ///< of the assumptions, where there are any
  std::vector<std::size_t> points;  ///< of the scenario, to simulate
  std::filesystem::path journal;    ///< finished simulations, a line each; read first if it is there
  bool what_if = true;              ///< with resources doubled, without noise: extra_simulations() a point
  bool progress = false;            ///< shown
  /// Called with each point's row of the first draw, as soon as it is there; what it throws ends the
  /// forecast.
  std::function<void(std::size_t point, const Row& row)> inspect = {};
};

/// Rows of every simulation of a scenario. A row that was not asked for is empty.
struct Simulations {
  std::vector<std::vector<double>> inputs;  ///< [draw][assumption], in [0, 1); one draw without assumptions
  std::vector<std::vector<double>> calibrated;  ///< [draw][calibration]: the value found
  std::vector<std::vector<double>> reached;     ///< [draw][calibration]: the figure that it gives
  std::vector<std::vector<Row>> rows;           ///< [draw][point]
  std::vector<std::map<Doubled, Row>> doubled;  ///< [point], of the middle of all assumptions
  std::vector<std::map<Without, Row>> without;  ///< [point], the same; where it has such noise
};

/// Values of all assumptions for a draw: Sobol's sequence, which fills the unit cube evenly; the first draw
/// is the middle. Source: I. Sobol, USSR Comput. Math. Math. Phys. 7 (1967), as Boost.Random has it.
std::vector<double> low_discrepancy(std::size_t draw, std::size_t dimensions);

/// Simulations of a point that only say what would change it.
int extra_simulations(const Scenario& scenario);

/// Simulates every point for every draw, and every point with each resource doubled and without its noise.
Simulations forecast(const Scenario& scenario, Library& library, const ForecastOptions& options);

}  // namespace stepcast
