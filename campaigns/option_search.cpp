#include "campaigns/option_search.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stepcast {

std::vector<double> finite_values(const std::vector<Outcome>& outcomes) {
  std::vector<double> values;
  double worst = std::numeric_limits<double>::infinity();
  for (const Outcome& outcome : outcomes) {
    values.push_back(outcome.value);
    if (std::isfinite(outcome.value)) worst = std::min(worst, outcome.value);
  }
  for (double& value : values) {
    if (!std::isfinite(value)) value = std::isfinite(worst) ? worst : 0;
  }
  return values;
}

}  // namespace stepcast
