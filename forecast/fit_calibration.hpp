#pragma once

#include <functional>
#include <string>
#include <vector>

#include "report/results/results.hpp"
#include "scenarios/reader/library.hpp"
#include "scenarios/reader/scenario.hpp"

namespace stepcast {

/// The result of a scenario's calibrations for one draw of the assumptions, by calibration.
struct Calibrated {
  std::vector<double> values;   ///< values of the calibrated keys
  std::vector<double> reached;  ///< figures that the simulation gives with these values
};

/// The results of a point with these values.
using SimulatedRow = std::function<Row(const std::vector<Assignment>&)>;

/// Simulates each point in a child process of its own.
SimulatedRow in_own_process(const Scenario& scenario, Library& library);

/// Simulates all points in this process, which is a child's.
SimulatedRow in_this_process(const Scenario& scenario, Library& library);

/// Finds the values of the calibrated keys with which the simulation gives the published figures, one
/// calibration after the other, for one draw of the assumptions. If no value inside the range gives the
/// figure, the value is the nearer end of the range.
/// @param inputs  by assumption, in [0, 1)
Calibrated calibrated_draw(const Scenario& scenario, const std::vector<double>& inputs,
                           const SimulatedRow& simulation);

/// Columns value_0, reached_0, value_1 and so on, for the journal; and back, of so many calibrations.
Row to_row(const Calibrated& found);
Calibrated calibrated_of(const Row& row, std::size_t count);

/// True if more than half of the step of these results is communication alone. Such a step says little about
/// the times of layers.
bool is_mostly_communication(const Row& results);

/// The results of a point with every assumption in the middle of its range. Forks a process that simulates
/// it.
Row middle_row(const Scenario& scenario, const Point& point, Library& library);

/// True if the calibrated simulation gives the figure to within 0.1 %; false if the range ends before.
bool is_reached(const Measurement& feed, double reached);

/// A sentence on what a fitted `strategy.compute_factor` means that is far from 1, by a factor of 1.5 and
/// more; empty for others. Of published rates in single precision, 90 % are within 1.44 of the rule.
std::string calibration_doubt(const std::string& key, double value);

}  // namespace stepcast
