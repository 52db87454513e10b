#pragma once

#include <cstddef>
#include <cstdint>

namespace stepcast {

/// How parameters follow their gradients. With g the gradient, w the parameter and r the learning rate:
///
///   sgd:      v = m v + g; w -= r v  (m momentum; without state if m = 0)
///   adagrad:  s += g^2; w -= r g / (sqrt(s) + e)
///   rmsprop:  s = d s + (1 - d) g^2; w -= r g / (sqrt(s) + e)
///   adam:     v = m v + (1 - m) g; s = d s + (1 - d) g^2;
///             w -= r (v / (1 - m^t)) / (sqrt(s / (1 - d^t)) + e)  (t steps, from 1)
///
/// Sources: J. Duchi et al., "Adaptive subgradient methods", JMLR 12 (2011); D. Kingma, J. Ba, "Adam",
/// arXiv:1412.6980, algorithm 1. sgd's momentum is outside the learning rate, as P. Goyal et al.,
/// arXiv:1706.02677, equation 9.
struct Optimizer {
  enum class Kind { sgd, adagrad, rmsprop, adam };

  Kind kind = Kind::sgd;
  double learning_rate = 0.01;
  double momentum = 0.9;  ///< sgd; adam: decay of the first moment
  double decay = 0.999;   ///< rmsprop, adam: of the second moment
  double epsilon = 1e-8;
};

/// Arrays of the parameters' size that the optimizer keeps: 0, 1 or 2.
std::size_t state_arrays(const Optimizer& optimizer);

/// One contiguous piece of parameters with what belongs to it.
struct UpdateArrays {
  float* value = nullptr;
  const float* gradient = nullptr;
  float* state[2] = {nullptr, nullptr};  ///< the first `state_arrays` are used; zero before the first step
  std::size_t elements = 0;
  std::int64_t step = 1;  ///< from 1
  float scale = 1;        ///< of the gradient: 1 / N where it is a sum of N
};

/// On the CPU, by OpenMP threads. Elements are independent, so any cut into pieces gives the same bits.
void update_on_cpu(const Optimizer& optimizer, const UpdateArrays& arrays);

}  // namespace stepcast
