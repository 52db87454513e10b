#pragma once

#include <memory>

#include "runtime/learning/learning_shard.hpp"

namespace stepcast {

/// The shard of a rank in any experiment that can learn: of a network that several ranks of this process have
/// in common (ModelPartition::Form::machines, Form::group), or `learning_shard`.
std::unique_ptr<LearningShard> rank_learning_shard(const LearningPlace& place);

}  // namespace stepcast
