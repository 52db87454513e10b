#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "campaigns/space.hpp"

namespace stepcast {

/// A point to try. `number` tells it from others with the same values.
struct Trial {
  int number = 0;
  Values values;
};

/// A trial and what it gave. Larger is better; a value that is not finite means that the trial failed.
struct Outcome {
  Trial trial;
  double value = 0;
};

/// Proposes points and learns from what they gave. Any number of trials may be under way at once, and they
/// may be told in any order.
class OptionSearch {
 public:
  virtual ~OptionSearch() = default;

  /// The next point to try; nothing while the optimizer waits for outcomes of trials under way.
  virtual std::optional<Trial> ask() = 0;

  /// @throws std::invalid_argument for a trial that was not asked for, or was told already
  virtual void tell(const Trial& trial, double value) = 0;
};

enum class SearchMethod { bayesian, evolution, random };
const std::vector<std::string>& search_method_names();

struct SearchOptions {
  SearchMethod method = SearchMethod::bayesian;
  int evaluations = 30;  ///< that will be asked for
  int population = 0;    ///< of the evolution; 0: a rule, see make_optimizer
  std::uint64_t seed = 1;
};

/// The population of an evolution: as given, or a tenth of the evaluations, from 5 to 50.
int population_of(const SearchOptions& options);

/// @throws std::invalid_argument for a space that cannot be or evaluations < 1
std::unique_ptr<OptionSearch> make_optimizer(const Space& space, const SearchOptions& options);

/// What may stand for outcomes: failed ones get the worst finite value (0 if there is none).
std::vector<double> finite_values(const std::vector<Outcome>& outcomes);

}  // namespace stepcast
