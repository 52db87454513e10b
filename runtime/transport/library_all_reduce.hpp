#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "strategies/collectives/algorithm_choice.hpp"

namespace stepcast {

/// All-reduce (sum, in place) by a library such as MPI.
struct LibraryAllReduce {
  std::string name = {};                 ///< of the library, for tables
  Algorithm algorithm = Algorithm::mpi;  ///< value of `all_reduce` whose sums the library makes
  /// Sums over `ranks` (ranks of the run), all of which call it in the same order; empty: no library.
  std::function<void(std::span<float> values, const std::vector<int>& ranks)> sum = {};
};

}  // namespace stepcast
