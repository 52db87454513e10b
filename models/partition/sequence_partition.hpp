#pragma once

#include <string>

#include "models/network/model.hpp"
#include "models/partition/layer_partition.hpp"

namespace stepcast {

/// Sequence parallelism of `ways` devices that share the layers (shard_tensor): the layers between shared
/// ones (norms, additions, dropout) work on 1/ways of the tokens. In place of each all-reduce stand a
/// reduce-scatter after a layer and an all-gather before the next; the gathered input of a shared layer is
/// not kept but gathered again during backward-data, for backward-weights. Source: V. Korthikanti et al.,
/// "Reducing activation recomputation in large transformer models", MLSys 2023, section 4.2.
/// @param model  the whole network
void divide_tokens(const Model& model, int ways, ShardedModel& sharded);

/// The layers as a device of the tensor axis keeps them: outputs after their reduce-scatter, and inputs
/// before their all-gather, with 1/ways of the tokens.
Model kept_layers(const ShardedModel& sharded, int ways);

/// What the devices of the context axis exchange for attention.
enum class ContextExchange {
  ring,        ///< keys and values pass round during attention, backward with their gradients
  all_gather,  ///< keys and values are gathered before attention, their gradients scattered after it
  all_to_all,  ///< each device gets all tokens of some heads, and gives them back after attention
  pass_kv,     ///< keys and values, repeated for each head of queries, are gathered during the device's own
               ///< part of attention; their fp32 gradients pass round
};

/// Context parallelism: each of `ways` devices has 1/ways of the tokens of every layer. Attention costs each
/// of them 1/ways of the whole, as with a causal mask where a device has an early and a late part of the
/// sequence; its shape is that of 1/ways of the heads. Sources: H. Liu, M. Zaharia, P. Abbeel, "Ring
/// attention with blockwise transformers", ICLR 2024 (ring); A. Grattafiori et al., "The Llama 3 herd of
/// models", arXiv:2407.21783, section 3.3.2 (all-gather); S. A. Jacobs et al., "DeepSpeed Ulysses",
/// arXiv:2309.14509 (all-to-all); pytorch/pytorch, torch/distributed/tensor/experimental/_attention.py,
/// _templated_ring_attention and its backward (pass_kv), and pytorch/torchtitan, models/llama/model.py,
/// repeat_kv.
void divide_context(int ways, ContextExchange how, ShardedModel& sharded);

/// The reason why divide_tokens cannot divide the layers that are not shared; empty if it can.
/// @param part  network of a device of the tensor axis
std::string token_problem(const Model& model, const Model& part, int ways);

/// The reason why attention cannot be divided like this; empty if it can.
/// @param part  network of a device of the tensor axis
std::string context_problem(const Model& part, int ways, ContextExchange how);

}  // namespace stepcast
