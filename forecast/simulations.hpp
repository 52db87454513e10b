#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "forecast/simulate_point.hpp"
#include "report/results/results.hpp"

namespace stepcast {

/// The rows of all simulations of a scenario. The rows of points that are not simulated are empty.
struct Simulations {
  /// [draw][assumption], in [0, 1); one draw if there are no assumptions.
  std::vector<std::vector<double>> inputs;
  std::vector<std::vector<double>> calibrated;  ///< [draw][calibration]: the calibrated value
  /// [draw][calibration]: the column's value with the calibrated input.
  std::vector<std::vector<double>> reached;
  std::vector<std::vector<Row>> rows;  ///< [draw][point]
  /// [point], with all assumptions in the middle of their ranges; only kinds of noise that the point has.
  std::vector<std::map<Without, Row>> without;
  /// [point][sample]: log(measured step / forecast step), the error of the model itself; empty without the
  /// discrepancy term (forecast/discrepancy.hpp).
  std::vector<std::vector<double>> log_errors;
  /// [draw][point]: what measurements add to every sample of log_errors; empty without measurements.
  std::vector<std::vector<double>> shifts;
  /// [point]: measured over counted memory in the first draw; empty if no memory was measured.
  std::vector<double> memory_factors;
  /// What the measured steps miss the middle of the assumptions by (posterior.hpp); empty before it is known.
  std::optional<double> misfit;
  double effective_draws = 0;  ///< that agree with the measurements; 0 without measurements
  bool second_round = false;   ///< so few of the first draws agreed that others were drawn around them
  std::map<std::size_t, std::size_t> scaling_base;  ///< by point: the point that its speed-up starts from
  /// By point: why at least one of its simulations failed. Such a point has no row in any draw.
  std::map<std::size_t, std::string> failed;
};

/// The values of a column at one point, by draw.
inline std::vector<double> over_draws(const Simulations& all, std::size_t point, const std::string& column) {
  std::vector<double> values;
  for (const auto& rows : all.rows) {
    if (const auto value = rows[point].number(column)) values.push_back(*value);
  }
  return values;
}

}  // namespace stepcast
