#pragma once

#include "models/pytorch_profile/profile.hpp"

namespace stepcast {

/// PyTorch without Kineto records no sequence numbers. The backward pass runs the nodes in the reverse order
/// of the forward pass, so each node gets the last operator of its type before that of the node before it.
/// Changes nothing if any operator has a number.
void number_operators(Profile& profile);

}  // namespace stepcast
