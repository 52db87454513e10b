#pragma once

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/simulation.hpp"
#include "tests/sim/child.hpp"

namespace stepcast {

inline const std::vector<std::string> kFidelityTexts{"message", "coupled", "message, sampled",
                                                     "coupled, roughly", "coupled, closely"};

struct ChildResult {
  double seconds;  ///< of the step
  std::size_t fidelity;
  bool folded;
};

/// Runs a simulation in a child process.
template <class Result>
ChildResult simulated_in_child(const Result& result_of) {
  const auto numbers = numbers_from_child(3, [&] {
    const SimulationResult result = result_of();
    const auto text = std::ranges::find(kFidelityTexts, to_text(result.fidelity)) - kFidelityTexts.begin();
    return std::vector<double>{result.steps.at(0).seconds, static_cast<double>(text),
                               to_text(result.folding) == "folded" ? 1.0 : 0.0};
  });
  return {numbers[0], static_cast<std::size_t>(numbers[1]), numbers[2] > 0};
}

/// The largest error of many cases.
struct Worst {
  double error = 0;
  std::uint32_t number = 0;
  int cases = 0;

  void take(double value, double reference, std::uint32_t of) {
    const double here = std::abs(value / reference - 1);
    ++cases;
    if (here <= error) return;
    error = here;
    number = of;
  }
  std::string text() const {
    return fmt::format("{} cases, worst {:.4f} % (case {})", cases, 100 * error, number);
  }
};

}  // namespace stepcast
