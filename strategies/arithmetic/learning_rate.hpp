#pragma once

#include <algorithm>
#include <cstdint>

namespace stepcast {

/// A learning rate that grows with the mini-batch: `base` for one worker's, N times as much for the sum of N
/// gradients, reached by equal steps from `base` over the first `warm_up` steps.
/// Source: P. Goyal et al., "Accurate, large minibatch SGD: training ImageNet in 1 hour", arXiv:1706.02677,
/// sections 2.1 (linear scaling rule) and 2.2 (gradual warm-up).
struct LearningRate {
  double base = 1e-3;
  bool linear = false;  ///< false: `base` always
  std::int64_t warm_up = 0;

  /// @param step  from 1
  double at(std::int64_t step, int summed) const {
    if (!linear) return base;
    const double reached =
        warm_up == 0 ? 1 : std::min(1.0, static_cast<double>(step) / static_cast<double>(warm_up));
    return base * (1 + (summed - 1) * reached);
  }
};

}  // namespace stepcast
