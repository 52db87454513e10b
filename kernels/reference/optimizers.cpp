#include <cmath>

#include "kernels/reference/reference.hpp"

namespace stepcast::reference {
namespace {

void update_one(const Optimizer& o, double g, double t, double& w, double* state[2]) {
  switch (o.kind) {
    case Optimizer::Kind::sgd: {
      if (o.momentum == 0) {
        w -= o.learning_rate * g;
        return;
      }
      *state[0] = o.momentum * *state[0] + g;
      w -= o.learning_rate * *state[0];
      return;
    }
    case Optimizer::Kind::adagrad:
      *state[0] += g * g;
      w -= o.learning_rate * g / (std::sqrt(*state[0]) + o.epsilon);
      return;
    case Optimizer::Kind::rmsprop:
      *state[0] = o.decay * *state[0] + (1 - o.decay) * g * g;
      w -= o.learning_rate * g / (std::sqrt(*state[0]) + o.epsilon);
      return;
    case Optimizer::Kind::adam: {
      *state[0] = o.momentum * *state[0] + (1 - o.momentum) * g;
      *state[1] = o.decay * *state[1] + (1 - o.decay) * g * g;
      const double first = *state[0] / (1 - std::pow(o.momentum, t));
      const double second = *state[1] / (1 - std::pow(o.decay, t));
      w -= o.learning_rate * first / (std::sqrt(second) + o.epsilon);
    }
  }
}

}  // namespace

void update(const Optimizer& optimizer, const Array& gradient, std::int64_t step, Array& value,
            std::vector<Array>& states) {
  for (std::size_t i = 0; i < value.size(); ++i) {
    double* state[2] = {nullptr, nullptr};
    for (std::size_t s = 0; s < states.size(); ++s) state[s] = &states[s][i];
    update_one(optimizer, gradient[i], static_cast<double>(step), value[i], state);
  }
}

}  // namespace stepcast::reference
