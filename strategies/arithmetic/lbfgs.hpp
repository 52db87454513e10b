#pragma once

#include <cstddef>
#include <deque>
#include <span>
#include <vector>

namespace stepcast {

/// The last steps s and changes of the gradient y, newest last.
struct LbfgsPair {
  std::vector<float> step, change;
};
using LbfgsHistory = std::deque<LbfgsPair>;

/// Adds the newest pair (parameters - last parameters, gradient - last gradient) and drops what is older than
/// `most` pairs. A pair without s y > 0 is left out: it would not leave the direction one of descent.
/// @throws std::invalid_argument if lengths differ or `most` is 0
void remember(LbfgsHistory& history, std::size_t most, LbfgsPair newest);

/// The direction -H g of limited-memory BFGS, two loops over the history; -g without any.
///
/// Every operation is a dot product, a sum or a scaling of whole vectors, which servers that hold a part each
/// can do on their parts: `operations`, where given, counts them, as a batch of `sandblaster` does
/// (lbfgs_operations).
///
/// Source: J. Nocedal, S. Wright, "Numerical Optimization", 2nd edition, algorithms 7.4 and 7.5.
/// @throws std::invalid_argument if lengths differ
std::vector<float> lbfgs_direction(const LbfgsHistory& history, std::span<const float> gradient,
                                   int* operations = nullptr);

/// Vector operations of one batch with a full history: of the two loops a dot product and a sum each a pair,
/// of the scaling two dot products and one scaling, the step, and the two new differences.
int lbfgs_operations(int history);

}  // namespace stepcast
