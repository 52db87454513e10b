#pragma once

#include <cmath>
#include <numbers>

#include "campaigns/option_search.hpp"

namespace stepcast {

/// Branin's function on x in [-5, 10], y in [0, 15]: three minima of 0.397887.
/// Source: L. C. W. Dixon, G. P. Szego, "Towards global optimisation 2", North-Holland 1978.
inline double branin(double x, double y) {
  const double pi = std::numbers::pi;
  const double bowl = y - 5.1 / (4 * pi * pi) * x * x + 5 / pi * x - 6;
  return bowl * bowl + 10 * (1 - 1 / (8 * pi)) * std::cos(x) + 10;
}
inline constexpr double kBraninMinimum = 0.397887;

inline Space branin_space() {
  return {{.name = "x", .low = -5, .high = 10}, {.name = "y", .low = 0, .high = 15}};
}

/// The largest value found by `evaluations` trials, `at_once` under way at a time.
template <class Function>
double best_found(OptionSearch& optimizer, int evaluations, int at_once, Function&& function) {
  double best = -1e300;
  for (int done = 0; done < evaluations;) {
    std::vector<Trial> trials;
    while (std::ssize(trials) < at_once && done + std::ssize(trials) < evaluations) {
      const auto trial = optimizer.ask();
      if (!trial) break;
      trials.push_back(*trial);
    }
    for (const Trial& trial : trials) {
      const double value = function(trial.values);
      best = value > best ? value : best;
      optimizer.tell(trial, value);
      ++done;
    }
  }
  return best;
}

}  // namespace stepcast
