#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/network/model.hpp"
#include "models/partition/spatial_partition.hpp"

namespace stepcast {

/// A collective among the devices that share a layer.
struct Exchange {
  enum class Kind { all_gather, reduce_scatter, all_reduce, all_to_all };
  /// The devices that take part: those that share the layer (also where there is only one kind of group),
  /// those with other tokens of the same samples, or those that share the experts.
  enum class Axis { tensor, context, expert };

  Kind kind{};
  /// Elements of the whole buffer for one sample; for all_to_all, of the buffer of one device.
  double elements = 0;
  Axis axis = Axis::tensor;
  bool fills_nics = false;  ///< all_to_all of DeepEP, see Experts
};

/// Collectives before and after the passes of one layer. Backward means the backward-data pass.
struct LayerExchange {
  std::vector<Exchange> before_forward = {}, after_forward = {}, before_backward = {}, after_backward = {};
  std::vector<Exchange> during_backward = {};  ///< only backward-weights needs them
  /// Data that passes from device to device while the layer computes with what has arrived.
  std::optional<Exchange> forward_ring = {}, backward_ring = {};
  double last_share = 0;  ///< share of the pass that needs the end of the ring
};

/// A network whose layers are shared by a group of devices that work on the same samples.
struct ShardedModel {
  Model part;                            ///< network of the device with the largest share
  std::vector<LayerExchange> exchanges;  ///< for each layer
  /// For each layer, whether its gradient must also be summed within the group, because the devices hold the
  /// same parameters and process different data.
  std::vector<bool> summed_in_group;
  /// Whether the devices of the tensor axis have different tokens of the layer, so that its gradient is a
  /// partial sum (sequence parallelism); empty: no layer.
  std::vector<bool> divided_tokens = {};
  /// Devices have different experts and the same routers: the gradient of a router, which is the first array
  /// of a layer of kind `experts`, is summed like those of the layers that `summed_in_group` marks.
  bool shares_experts = false;
};

/// The reason why no part of the network's first layer of kind `measured` can be computed alone; empty if it
/// has no such layer.
std::string measured_problem(const Model& model);

/// Filter parallelism: the filters (channels, units) of every convolution and dense layer are partitioned
/// among `ways` devices. Each device needs the whole input: an all-gather before the layer, and a
/// reduce-scatter of its error signal after backward-data, once for all readers of an output. The layers in
/// between work on the channels of their device. Source: A. Krizhevsky, "One weird trick for parallelizing
/// convolutional neural networks", arXiv:1404.5997; N. Dryden et al., "Channel and filter parallelism for
/// large-scale CNN training", SC 2019.
ShardedModel shard_filters(const Model& model, int ways);

/// True if a layer needs the whole of its input where devices have parts of the channels or features.
bool reads_all_filters(const Layer& layer);

/// The reason why the filters cannot be partitioned like this; empty if they can.
std::string filter_problem(const Model& model, int ways);

/// Tensor parallelism: each block of a transformer is partitioned over `ways` devices, attention by heads and
/// the hidden layer by units, so that a block needs two all-reduces of its output forward and two backward.
/// The vocabulary is partitioned as well. Every device computes all norms and additions. Source: M. Shoeybi
/// et al., "Megatron-LM: training multi-billion parameter language models using model parallelism",
/// arXiv:1909.08053, section 3.
ShardedModel shard_tensor(const Model& model, int ways);

/// The reason why the blocks cannot be partitioned like this; empty if they can.
std::string tensor_problem(const Model& model, int ways);

/// Mixture of experts: the network's own layers of kind `experts`, or experts in place of the hidden layers
/// of transformer blocks.
struct Experts {
  int count = 8;  ///< experts per layer
  int ways = 1;   ///< devices that the experts are partitioned over; each has count / ways
  int top = 2;    ///< experts that process a token
  /// Capacity of an expert / its even share of tokens; unused capacity is padding.
  double capacity_factor = 1;
  bool pads = false;  ///< experts refuse tokens beyond their capacity, and all-to-alls carry the padding
  int every = 2;      ///< one block in `every` has experts, the last one; unused if the network has experts
  /// Devices that share the hidden units of every expert and have different tokens (sequence parallelism);
  /// 1: they have the same tokens.
  int token_ways = 1;
  /// DeepEP's all-to-alls, which fill the NICs: a token crosses the network once for each node of its
  /// experts, of which it visits `nodes` at most (0: no limit), and is passed on inside it at no further
  /// cost.
  bool deep_ep = false;
  int nodes = 0;
  double dispatched = 1;  ///< bytes of an element that goes to its expert, over one that comes back
};

/// The layers of kind `experts`, which a network has if it was trained with experts, such as Mixtral.
std::vector<std::size_t> expert_layers(const Model& model);

/// Expert parallelism: each device has its own tokens. An all-to-all before the experts and one after them
/// are needed forward, and the same two backward. Assumes that all experts get equally many tokens; the work
/// of the router is neglected. The layers may be shared already. Where devices of the tensor axis have
/// different tokens, the rows of an expert are gathered over them after the all-to-all and scattered before
/// the next. Sources: D. Lepikhin et al., "GShard: scaling giant models with conditional computation and
/// automatic sharding", ICLR 2021, section 2; Megatron-Core, MoEAlltoAllTokenDispatcher; DeepEP: DeepSeek-AI,
/// "DeepSeek-V3 technical report", arXiv:2412.19437, section 3.2.2 (nodes, no overhead inside them) and 3.3.2
/// (fp8 to the experts, bf16 back); deepseek-ai/DeepEP, README.md (rate of the NICs).
void share_experts(const Experts& experts, ShardedModel& sharded);

/// The reason why the experts cannot be partitioned like this; empty if they can.
std::string expert_problem(const Model& model, const Experts& experts);

/// A network of locally connected and dense layers on several machines: maps are partitioned along both
/// dimensions, with halo exchange; dense layers are partitioned by units. Locally connected filters are
/// stored with their positions. A pool with fewer positions than machines is computed in parts, whose sums
/// are added up. Source: J. Dean et al., "Large scale distributed deep networks", NIPS 2012, section 3.
struct PartitionedModel {
  ShardedModel sharded;
  SpatialPartition spatial;  ///< of the layers before the dense ones
};
/// Partitions the model over `machines` machines.
PartitionedModel partition(const Model& model, int machines);

/// The reason why the model cannot be partitioned over the machines; empty if it can.
std::string partition_problem(const Model& model, int machines);

}  // namespace stepcast
