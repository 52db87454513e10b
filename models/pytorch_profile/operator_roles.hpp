#pragma once

#include <vector>

#include "models/pytorch_profile/profile.hpp"

namespace stepcast {

/// The host's time of one training step [us].
struct StepRange {
  double start = 0, end = 0;
  int name = 0;
};

/// The steps of a profile ("ProfilerStep#n") in order of time.
std::vector<StepRange> step_ranges(const Profile& profile);

/// The step in which a time lies; -1 if in none.
int step_at(const std::vector<StepRange>& steps, double time);

/// The purpose of an operator's work.
struct OperatorRole {
  enum class Pass { forward, backward_data, backward_weights, backward_both, gradient_sum };
  int network_operator = -1;  ///< index into the step's operators; -1: no layer's
  Pass pass{};
  Share share = Share::other;
};

/// The role of each operator of the profile.
struct OperatorRoles {
  std::vector<OperatorRole> of;
  bool foreach_optimizer = false;  ///< one kernel updated parameters of several layers
};

/// Finds the operators of each step's forward pass and what every other operator is to them. A node of the
/// backward pass belongs to the operator that has its sequence number and its type.
OperatorRoles operator_roles(const Profile& profile, const std::vector<StepRange>& ranges,
                             std::vector<ProfileStep>& steps);

}  // namespace stepcast
