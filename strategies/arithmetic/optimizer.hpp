#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace stepcast {

/// A change of the learning rate.
struct RateChange {
  std::int64_t after = 0;  ///< number of steps before the change
  double factor = 1;       ///< the rate is multiplied by it from then on
};

/// A learning rate that grows with the mini-batch: `base` for one worker's mini-batch and N x `base` for the
/// sum of N gradients, reached from `base` in equal increments over the first `warm_up` steps. Source: P.
/// Goyal et al., "Accurate, large minibatch SGD: training ImageNet in 1 hour", arXiv:1706.02677, sections 2.1
/// (linear scaling rule), 2.2 (gradual warm-up) and 5.1 (the rate falls in steps).
struct LearningRate {
  double base = 1e-3;
  bool linear = false;  ///< false: the number of summed gradients does not change the rate
  std::int64_t warm_up = 0;
  std::vector<RateChange> schedule = {};

  /// @param step  from 1
  double at(std::int64_t step, int summed) const {
    double rate = base;
    for (const RateChange& change : schedule) rate *= step > change.after ? change.factor : 1;
    if (!linear) return rate;
    const double reached = warm_up == 0 ? 1 : std::min(1.0, static_cast<double>(step) / warm_up);
    return rate * (1 + (summed - 1) * reached);
  }
};

/// Optimizer of the parameters. g is the gradient, w the parameter and r the learning rate:
///
///   sgd:      v = m v + g; w -= r v  (m: momentum; no state if m = 0)
///   adagrad:  s += g^2; w -= r g / (sqrt(s) + e)
///   rmsprop:  s = d s + (1 - d) g^2; w -= r g / (sqrt(s) + e)
///   adam:     v = m v + (1 - m) g; s = d s + (1 - d) g^2;
///             w -= r (v / (1 - m^t)) / (sqrt(s / (1 - d^t)) + e)  (t: step, from 1)
///
/// Sources: J. Duchi et al., "Adaptive subgradient methods", JMLR 12 (2011); D. Kingma, J. Ba, "Adam",
/// arXiv:1412.6980, algorithm 1. The learning rate of sgd multiplies the velocity, as in P. Goyal et al.,
/// arXiv:1706.02677, equation 9.
struct Optimizer {
  enum class Kind { sgd, adagrad, rmsprop, adam };

  Kind kind = Kind::sgd;
  double learning_rate = 0.01;
  double momentum = 0.9;  ///< momentum of sgd; adam: decay of the first moment
  double decay = 0.999;   ///< rmsprop, adam: decay of the second moment
  double epsilon = 1e-8;
};

/// Number of arrays of the parameters' size that the optimizer keeps: 0, 1 or 2.
std::size_t state_arrays(const Optimizer& optimizer);

/// A contiguous range of parameters with its gradients and optimizer state.
struct UpdateArrays {
  float* value = nullptr;
  const float* gradient = nullptr;
  float* state[2] = {nullptr, nullptr};  ///< the first `state_arrays` are used; zero before the first step
  std::size_t elements = 0;
  std::int64_t step = 1;  ///< from 1
  float scale = 1;        ///< factor on the gradient: 1 / N for a sum of N gradients
};

/// Updates parameters on the CPU with OpenMP threads. Elements are independent, so the number of threads does
/// not change the bits.
void update_on_cpu(const Optimizer& optimizer, const UpdateArrays& arrays);

}  // namespace stepcast
