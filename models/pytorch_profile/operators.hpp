#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "models/network/layer.hpp"
#include "models/pytorch_profile/profile.hpp"

namespace stepcast {

/// "aten::relu_" and "ReluBackward0" both become "relu": no namespace, no "Backward" and its number, no
/// underscores, lower case. An operator and its node of the backward pass have the same word.
std::string operator_word(std::string_view name);

/// The kind of an operator of the forward pass. Words are those of layer kinds, with three more:
/// "view" (moves no numbers, or only copies them), "product" (of two computed tensors), "other".
std::string operator_kind(std::string_view name);

/// True if a layer kind can begin with an operator of that kind, and go on with it. Some layers are one
/// operator; attention or GELU written out are several.
bool begins_layer(LayerKind layer, std::string_view operator_kind);
bool continues_layer(LayerKind layer, std::string_view operator_kind);

/// True for operators that copy or fill a tensor without a gradient: between layers that is a target or a
/// mask.
bool prepares_input(const std::string& word);

/// The precision that kernels' names tell: "tf32", "f16", "bf16" or "f32"; empty if the name tells none.
std::string kernel_precision(std::string_view kernel);

/// The pass of a convolution that a kernel's name tells.
enum class ConvolutionPass { data, weights, unknown };
ConvolutionPass convolution_pass(std::string_view kernel);

/// A layer of a known kind, as an item of a network file.
struct OperatorLayer {
  LayerKind kind{};
  std::string text;          ///< `kind` and its keys, such as "kind: dense, units: 10, bias: true"
  Shape output;              ///< of one sample
  bool needs_shape = false;  ///< it reads a shape, not only as many numbers
};

/// The shape of one sample of a recorded shape: its first size is the batch, or a multiple of it.
/// {1} for an empty shape or one that does not hold whole samples.
Shape sample_shape(const Shape& recorded, std::int64_t batch);

/// The recorded shape of the operator's input, with the batch; empty if it is not known.
Shape input_shape(const NetworkOperator& one);

/// Name of an operator's layer: "aten::max_pool2d" gives "max_pool2d".
std::string layer_name(const NetworkOperator& one);

/// The layer of an operator, if its shapes say all about it and its trained arrays are those of the layer.
/// @param in   shape of one sample of the input
/// @param out  of the output
std::optional<OperatorLayer> known_layer(const NetworkOperator& one, const Shape& in, const Shape& out);

/// Sorts the operators by thread and start, and finds the operator around each one: those of a thread nest by
/// time.
void find_parents(Profile& profile);

/// PyTorch without Kineto records no sequence numbers. The backward pass runs the nodes in the reverse order
/// of the forward pass, so each node is paired with the last operator of its type that precedes the operator
/// of the previous node. Changes nothing if any operator has a number.
void number_operators(Profile& profile);

/// Joins kernels to operators by their external id; where there is none, by the time of the launch.
void join_kernels(Profile& profile);

/// In a profile without GPU work, an operator's time less that of its parts takes the place of a kernel.
void add_cpu_work(Profile& profile);

/// The host's time of one training step [us].
struct StepRange {
  double start = 0, end = 0;
  int name = 0;
};

/// The steps of a profile in order of time: "ProfilerStep#n", or what ends with an optimizer's step.
std::vector<StepRange> step_ranges(const Profile& profile);

/// The step in which a time lies; -1 if in none.
int step_at(const std::vector<StepRange>& steps, double time);

/// The purpose of an operator's work.
struct OperatorRole {
  enum class Pass { forward, backward_data, backward_weights, backward_both, gradient_sum };
  int network_operator = -1;  ///< index into the step's operators; -1: no layer's
  Pass pass{};
  NonLayerWork work = NonLayerWork::other;
  int step = -1;  ///< of the operator: a pipelined backward pass may run in a later step; -1: where it ran
  bool outside = false;  ///< backward pass of a step before the profile began
};

/// The role of each operator of the profile.
struct OperatorRoles {
  std::vector<OperatorRole> of;
  bool foreach_optimizer = false;  ///< one kernel updated parameters of several layers
};

/// Refuses collectives that are no sums of gradients: those of tensor, expert, pipeline or sharded-table
/// parallelism, whose times and messages the trace would lose. Those outside the passes are counted in
/// `Attribution::collectives`.
/// @throws InputError with their number, kinds and groups
void check_collectives(const Profile& profile, const std::vector<StepRange>& ranges,
                       const OperatorRoles& roles, std::map<std::string, int>& outside);

/// The host's time of each operator and of the optimizer, from its start to the next one's, less what it
/// waited in calls of the runtime.
void add_host_times(const Profile& profile, const std::vector<StepRange>& ranges, const OperatorRoles& roles,
                    std::vector<ProfileStep>& steps);

/// Operators that are layers of the forward pass and that no node of the backward pass has as a part.
bool is_forward_layer(const std::string& name);

/// Layers that ran again in each node of the backward pass, as torch.utils.checkpoint runs them: by the
/// node's index. Only a run of the forward pass counts: operators of layers in its order.
/// @throws InputError if layers ran in a node and were no such run
std::set<int> recomputing_nodes(const Profile& profile, const std::vector<StepRange>& ranges);

/// A range or an operator of FSDP that gathers parameters or scatters gradients, and not a module's own pass.
bool is_sharding(const std::string& name);

/// True for a kernel of NCCL or RCCL.
bool is_nccl(const std::string& kernel);

/// Finds the operators of each step's forward pass and what every other operator is to them. A node of the
/// backward pass belongs to the operator that has its sequence number and its type.
OperatorRoles operator_roles(const Profile& profile, const std::vector<StepRange>& ranges,
                             std::vector<ProfileStep>& steps);

}  // namespace stepcast
