#pragma once

#include <limits>

namespace stepcast {

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
