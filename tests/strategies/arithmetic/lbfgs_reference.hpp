#pragma once

#include <cstddef>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "strategies/arithmetic/model_updates.hpp"

// L-BFGS on one machine, with which the tests compare Sandblaster's, whose servers have parts of all vectors.
namespace stepcast::test {

inline double dot(std::span<const float> a, std::span<const float> b) {
  return std::inner_product(a.begin(), a.end(), b.begin(), 0.0);
}

/// Adds the newest pair (parameters - last parameters, gradient - last gradient) and drops what is older than
/// `most` pairs. A pair without s y > 0 is left out, because the direction could then fail to descend.
inline void remember(LbfgsHistory& history, std::size_t most, LbfgsPair newest) {
  if (!(dot(newest.step, newest.change) > 0)) return;
  history.push_back(std::move(newest));
  if (history.size() > most) history.pop_front();
}

/// The direction -H g of limited-memory BFGS by two loops over the history; -g if the history is empty.
/// `operations`, if given, counts the dot products, sums and scalings of whole vectors.
/// Source: J. Nocedal, S. Wright, "Numerical Optimization", 2nd edition, algorithms 7.4 and 7.5.
inline std::vector<float> lbfgs_direction(const LbfgsHistory& history, std::span<const float> gradient,
                                          int* operations = nullptr) {
  int done = 0;
  std::vector<float> q(gradient.begin(), gradient.end());
  const auto add = [&](double factor, const std::vector<float>& b) {
    for (std::size_t i = 0; i < q.size(); ++i) q[i] = q[i] + factor * b[i];
  };
  std::vector<double> alpha(history.size()), rho(history.size());
  for (std::size_t i = history.size(); i-- > 0;) {
    const auto& [step, change] = history[i];
    rho[i] = 1 / dot(change, step);  // known since the pair was new: counted there
    alpha[i] = rho[i] * dot(step, q);
    add(-alpha[i], change);
    done += 2;
  }
  double scale = -1;
  if (!history.empty()) {
    const auto& [step, change] = history.back();
    scale = -dot(step, change) / dot(change, change);
    done += 2;
  }
  for (float& value : q) value = scale * value;
  ++done;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const auto& [step, change] = history[i];
    const double beta = -rho[i] * dot(change, q);  // q holds the direction, -r
    add(-(alpha[i] - beta), step);
    done += 2;
  }
  if (operations != nullptr) *operations += done;
  return q;
}

}  // namespace stepcast::test
