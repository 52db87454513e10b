#pragma once

#include "strategies/plan.hpp"

namespace stepcast {

/// The role of a rank; -1: none.
int role_of(const Plan& plan, int rank);

/// Ranks of all roles that train.
int training_ranks(const Plan& plan);

}  // namespace stepcast
