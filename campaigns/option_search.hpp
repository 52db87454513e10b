#pragma once

#include <optional>
#include <vector>

#include "campaigns/space.hpp"

namespace stepcast {

/// A point to evaluate. `number` distinguishes trials with the same values.
struct Trial {
  int number = 0;
  Values values;
};

/// A trial and its result. Larger values are better. A value that is not finite means that the trial failed.
struct Outcome {
  Trial trial;
  double value = 0;
};

/// A black-box optimizer with the ask-and-tell interface. Any number of trials may be pending at once, and
/// their results may come in any order.
class OptionSearch {
 public:
  virtual ~OptionSearch() = default;

  /// Proposes the next point. Empty while the optimizer waits for results of pending trials.
  virtual std::optional<Trial> ask() = 0;

  /// Records the result of a trial.
  /// @throws std::invalid_argument for a trial that was not proposed, or whose result is known already
  virtual void tell(const Trial& trial, double value) = 0;
};

/// Values of the outcomes. Failed trials get the worst finite value, or 0 if there is none.
std::vector<double> finite_values(const std::vector<Outcome>& outcomes);

}  // namespace stepcast
