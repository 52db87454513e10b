#pragma once

#include <cstddef>
#include <deque>
#include <limits>
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

/// A line search that knows the derivative along the direction, but not the function. With f(a) the function
/// at the length a of the step, a trial is accepted if
///
///   (2 delta - 1) f'(0) >= f'(a) >= sigma f'(0),   delta = 0.1, sigma = 0.9
///
/// These are the approximate Wolfe conditions. Source: W. Hager, H. Zhang, "A new conjugate gradient method
/// with guaranteed descent and an efficient line search", SIAM Journal on Optimization 16, 2005, section 1.
/// The second one makes the curvature of the pair that L-BFGS remembers positive.
struct LineSearch {
  double slope = 0;                                       ///< f'(0), below 0 for a direction of descent
  double length = 1;                                      ///< a of the trial under way
  double low = 0;                                         ///< the longest step that was too short
  double high = std::numeric_limits<double>::infinity();  ///< the shortest step that was too long
  int trials = 0;                                         ///< refused so far

  /// Judges the trial. If it is refused, `length` becomes that of the next one: twice as long, or halfway
  /// between `low` and `high`. The trial after kMaxRefused refused ones is accepted.
  /// @param derivative  f'(length); one that is not finite counts as too long
  bool accepts(double derivative);

  static constexpr int kMaxRefused = 20;
};

}  // namespace stepcast
