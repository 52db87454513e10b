#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "campaigns/option_search.hpp"

namespace stepcast {

/// Options of a search by any method.
struct SearchOptions {
  SearchMethod method = SearchMethod::bayesian;
  int evaluations = 30;  ///< trials that will be proposed
  int population = 0;    ///< population of the evolutionary search; 0: see population_of
  std::uint64_t seed = 1;
};

/// The population of the evolutionary search: the given one, or a tenth of the evaluations, from 5 to 50.
int population_of(const SearchOptions& options);

/// Creates the optimizer of a method.
/// @throws std::invalid_argument for an invalid space, or if evaluations < 1
std::unique_ptr<OptionSearch> make_optimizer(const Space& space, const SearchOptions& options);

}  // namespace stepcast
