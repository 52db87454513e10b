#pragma once

#include <cmath>

#include "campaigns/checkpoint_interval.hpp"

namespace stepcast {

/// Expected time of a training with blocking checkpoints and FailureResponse::restart:
/// T = M e^(R / M) (e^((tau + delta) / M) - 1) T_s / tau. Exact where tau divides T_s. Source: Daly 2006.
inline Seconds daly_training_time(const Faults& faults) {
  const double m = checkpoint_problem(faults).mtbf.value;
  const double restart = faults.repair.value + faults.restart.value;
  const double interval = faults.checkpoints.interval.value;
  const double segment = interval + faults.checkpoints.write.value;
  return {m * std::exp(restart / m) * std::expm1(segment / m) * faults.training.value / interval};
}

}  // namespace stepcast
