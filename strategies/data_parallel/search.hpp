#pragma once

#include "strategies/options/strategy.hpp"

namespace stepcast {

/// A hyper-parameter search with cross-validation whose trainings run: what campaigns/schedule.hpp computes
/// from the time of a training, as a program. A step of a rank is a point of its group.
///
///   1. the first rank of a group asks the driver for a point, which takes the time of a proposal
///   2. each slot of the group trains its folds one after the other; its ranks sum their gradients
///   3. the group waits for its slowest slot
Strategy search_strategy();

}  // namespace stepcast
