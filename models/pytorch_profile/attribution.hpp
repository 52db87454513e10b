#pragma once

#include <string>
#include <vector>

#include "models/pytorch_profile/profile.hpp"

namespace stepcast {

/// The GPU's time of every step, given to operators of the forward pass.
struct Attribution {
  std::vector<ProfileStep> steps;
  double gpu_seconds = 0;      ///< of all steps
  double unknown_seconds = 0;  ///< that no rule could place
  double halved_seconds = 0;
  bool foreach_optimizer = false;
  int micro_batches = 1;  ///< whose gradients a step sums; each of them is a step here
  std::string precision;  ///< of most of the products' time
  std::string dropped;    ///< steps that were left out, and why; empty: none

  double attributed() const { return gpu_seconds > 0 ? 1 - unknown_seconds / gpu_seconds : 0; }
};

/// Gives each kernel to a step (by the time of its launch), an operator, and a pass.
/// Steps of one profile have the same operators in the same order.
/// @throws InputError one line: no steps, no backward pass, several GPUs, CUDA graphs, torch.compile, or
/// under 98 % of the GPU's time placed
Attribution attribute(const Profile& profile);

}  // namespace stepcast
