#include "strategies/arithmetic/optimizer.hpp"

#include <cmath>

namespace stepcast {
namespace {

void sgd(const Optimizer& optimizer, const UpdateArrays& a) {
  const float rate = optimizer.learning_rate;
  const float momentum = optimizer.momentum;
  if (momentum == 0) {
#pragma omp parallel for simd schedule(static)
    for (std::size_t i = 0; i < a.elements; ++i) a.value[i] -= rate * (a.scale * a.gradient[i]);
    return;
  }
  float* velocity = a.state[0];
#pragma omp parallel for simd schedule(static)
  for (std::size_t i = 0; i < a.elements; ++i) {
    velocity[i] = momentum * velocity[i] + a.scale * a.gradient[i];
    a.value[i] -= rate * velocity[i];
  }
}

/// @param keep, add  factors on the old and the new square: 1, 1 for adagrad; d, 1 - d for rmsprop
void scaled_by_root(const Optimizer& optimizer, const UpdateArrays& a, float keep, float add) {
  const float rate = optimizer.learning_rate;
  const float epsilon = optimizer.epsilon;
  float* squares = a.state[0];
#pragma omp parallel for simd schedule(static)
  for (std::size_t i = 0; i < a.elements; ++i) {
    const float g = a.scale * a.gradient[i];
    squares[i] = keep * squares[i] + add * g * g;
    a.value[i] -= rate * g / (std::sqrt(squares[i]) + epsilon);
  }
}

void adam(const Optimizer& optimizer, const UpdateArrays& a) {
  const float m = optimizer.momentum;
  const float d = optimizer.decay;
  const double t = a.step;
  const float rate = optimizer.learning_rate / (1 - std::pow(optimizer.momentum, t));
  const float square_scale = 1 / (1 - std::pow(optimizer.decay, t));
  const float epsilon = optimizer.epsilon;
  float* first = a.state[0];
  float* second = a.state[1];
#pragma omp parallel for simd schedule(static)
  for (std::size_t i = 0; i < a.elements; ++i) {
    const float g = a.scale * a.gradient[i];
    first[i] = m * first[i] + (1 - m) * g;
    second[i] = d * second[i] + (1 - d) * g * g;
    a.value[i] -= rate * first[i] / (std::sqrt(second[i] * square_scale) + epsilon);
  }
}

}  // namespace

std::size_t state_arrays(const Optimizer& optimizer) {
  if (optimizer.kind == Optimizer::Kind::adam) return 2;
  if (optimizer.kind == Optimizer::Kind::sgd) return optimizer.momentum == 0 ? 0 : 1;
  return 1;
}

void update_on_cpu(const Optimizer& optimizer, const UpdateArrays& arrays) {
  const float decay = optimizer.decay;
  switch (optimizer.kind) {
    case Optimizer::Kind::sgd:
      return sgd(optimizer, arrays);
    case Optimizer::Kind::adagrad:
      return scaled_by_root(optimizer, arrays, 1, 1);
    case Optimizer::Kind::rmsprop:
      return scaled_by_root(optimizer, arrays, decay, 1 - decay);
    case Optimizer::Kind::adam:
      return adam(optimizer, arrays);
  }
}

}  // namespace stepcast
