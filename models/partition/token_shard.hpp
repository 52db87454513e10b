#pragma once

#include <string>

#include "models/partition/tensor_shard.hpp"
#include "models/partition/token_division.hpp"

namespace stepcast {

/// The part of one rank of the tensor and context axes of a mesh: `tensor_shard` of `ways` devices whose
/// tokens are divided. With a causal mask and gathered keys, a rank has an early and a late run of tokens if
/// these are even, so that no rank has more unmasked scores. Source: A. Grattafiori et al., "The Llama 3 herd
/// of models", arXiv:2407.21783, section 3.3.2.
/// @param place  its place in the tensor axis + ways x its place in the context axis
SharedPart token_shard(const Model& model, int ways, const TokenDivision& division, int place);

/// The tokens of each whole sample, in the order in which a rank has those of the network's input, or of its
/// targets.
/// @param targets  true: the ranks that share the classes of the loss have the targets of all their tokens
std::vector<Rows> tokens_of_rank(const Model& model, int ways, const TokenDivision& division, int place,
                                 bool targets);

/// The reason why kernels cannot compute the parts of token_shard; empty if they can.
std::string token_part_problem(const Model& model, int ways, const TokenDivision& division);

}  // namespace stepcast
