#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace stepcast {

/// A step s and the change of the gradient y.
struct LbfgsPair {
  std::vector<float> step, change;
};
/// The last pairs, newest last.
using LbfgsHistory = std::deque<LbfgsPair>;

/// Adds the newest pair (parameters - last parameters, gradient - last gradient) and drops what is older than
/// `most` pairs. A pair without s y > 0 is left out, because the direction could then fail to descend.
/// @throws std::invalid_argument if lengths differ or `most` is 0
void remember(LbfgsHistory& history, std::size_t most, LbfgsPair newest);

/// The direction -H g of limited-memory BFGS by two loops over the history; -g if the history is empty.
///
/// Every operation is a dot product, a sum or a scaling of whole vectors, which servers can do on their
/// parts. `operations`, if given, counts them, as lbfgs_operations does for a batch of `sandblaster`.
///
/// Source: J. Nocedal, S. Wright, "Numerical Optimization", 2nd edition, algorithms 7.4 and 7.5.
/// @throws std::invalid_argument if lengths differ
std::vector<float> lbfgs_direction(const LbfgsHistory& history, std::span<const float> gradient,
                                   int* operations = nullptr);

/// Vector operations of one batch of `sandblaster` with a full history: a dot product and a sum for each pair
/// in each of the two loops; the derivative along the direction at the end of a step and at the start of the
/// next, from which s y follows; the two new differences, with y y; the scaling; and the step.
int lbfgs_operations(int history);

}  // namespace stepcast
