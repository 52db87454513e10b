#include "tests/drawn/laws.hpp"

#include <cmath>

#include "tests/drawn/law_checks.hpp"

namespace stepcast::drawn {

const std::vector<Law>& laws() {
  static const std::vector<Law> all{{"forms", check_forms, true}, {"simgrid", check_simgrid},
                                    {"repeated", check_repeated}, {"bounds", check_bounds, true},
                                    {"halved", check_halved},     {"faster", check_faster},
                                    {"permuted", check_permuted}};
  return all;
}

double difference(double value, double reference) {
  if (value == reference) return 0;
  const double share = std::abs(value / reference - 1);
  return std::isfinite(share) ? share : 1e300;
}

std::string result_text(const Outcome& outcome) {
  return to_text(outcome.result.fidelity) + ", " + to_text(outcome.result.folding);
}

}  // namespace stepcast::drawn
