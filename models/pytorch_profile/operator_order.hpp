#pragma once

#include "models/pytorch_profile/profile.hpp"

namespace stepcast {

/// Sorts the operators by thread and start, and finds the operator around each one: those of a thread nest by
/// time.
void find_parents(Profile& profile);

/// PyTorch without Kineto records no sequence numbers. The backward pass runs the nodes in the reverse order
/// of the forward pass, so each node gets the last operator of its type before that of the node before it.
/// Changes nothing if any operator has a number.
void number_operators(Profile& profile);

}  // namespace stepcast
