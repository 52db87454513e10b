#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "campaigns/optimizer.hpp"
#include "report/results.hpp"

namespace stepcast {

/// Simulates some settings at once: their names, to their rows. A row that has no value carries `failed`, the
/// reason.
using Simulate = std::function<std::map<std::string, Row>(const std::map<std::string, Values>& open)>;

struct TrialOptions {
  std::string column;  ///< that is made large, or small
  bool smallest = false;
  int evaluations = 30;  ///< different settings that are simulated
  int at_once = 4;       ///< proposals under way together; an evolution always has a whole generation
  std::function<std::string(const Values&)> name;  ///< of a setting: what is simulated once
};

/// One evaluation, in the order in which they were asked for.
struct Evaluation {
  std::string name;
  Values values;
  Row row;
};

/// The figure that the search is for; larger is better, not a number where a setting failed or does not fit.
double merit(const Row& row, const TrialOptions& options);

/// Asks, simulates and tells until `evaluations` different settings were simulated, or nothing new is
/// proposed. Settings in `known` are not simulated again. `done` is called after every round.
std::vector<Evaluation> run_trials(OptionSearch& optimizer, const TrialOptions& options,
                                   std::map<std::string, Row> known, const Simulate& simulate,
                                   const std::function<void(const std::vector<Evaluation>&)>& done);

}  // namespace stepcast
