#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "core/words.hpp"

namespace stepcast {

/// Ways to search for good hyper-parameters (search_method.hpp creates them).
enum class SearchMethod { bayesian, evolution, random, direct };
const Words<SearchMethod>& search_method_words();

/// One parameter of a search space.
struct Parameter {
  enum class Kind { real, integer, choice };

  std::string name;
  Kind kind = Kind::real;
  double low = 0, high = 1;               ///< range of a number, both ends included
  bool logarithmic = false;               ///< numbers: distances are taken on the logarithm
  std::vector<std::string> choices = {};  ///< words of a choice, without an order
};

/// A search space: the product of its parameters.
using Space = std::vector<Parameter>;

/// A point of a space: one value for each parameter. The value of a choice is the index of its word.
using Values = std::vector<double>;

/// Checks a space. @throws std::invalid_argument for an empty space, an empty range, or a logarithmic one
/// that is not > 0
void check(const Space& space);

/// Number of different points; infinity if a parameter is real.
double point_count(const Space& space);

/// The value of a parameter at position `u` in [0, 1] of its range, or of its list of words. Integers are
/// rounded so that a uniform `u` makes each equally likely; on a logarithmic range, in proportion to its
/// share of the logarithm.
double value_at(const Parameter& parameter, double u);

/// Position of a number on its range, in [0, 1]. The inverse of `value_at` up to rounding.
double position_of(const Parameter& parameter, double value);

/// A uniformly drawn point. Sets `key.item` for each parameter.
Values random_values(const Space& space, RandomKey key);

/// Coordinates for a Gaussian process: the position of each number, and for a choice of k words k coordinates
/// (one-hot). The coordinate of the chosen word is 1 / sqrt(2), so that two different words are at
/// distance 1.
std::vector<double> features(const Space& space, const Values& values);

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
