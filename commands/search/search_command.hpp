#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace stepcast {

/// The options of `stepcast search`.
struct SearchCommand {
  std::string scenario, over, point, output;
  std::string column;     ///< column of results.csv that is optimised
  bool smallest = false;  ///< true: minimise the column; false: maximise it
  std::string method = "bayesian";
  std::vector<std::string> settings;  ///< overrides of the form KEY=VALUE
  int evaluations = 30;
  int at_once = 4;     ///< settings proposed before the first of their results is known; not for evolution
  int population = 0;  ///< of the method evolution; 0: a tenth of the evaluations
  int processes = 0;   ///< 0: one per core
  std::uint64_t seed = 1;
  bool resume = false;
};

}  // namespace stepcast
