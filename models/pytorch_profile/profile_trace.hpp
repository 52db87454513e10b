#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/layer_times/trace.hpp"
#include "models/network/model.hpp"
#include "models/pytorch_profile/profile.hpp"

namespace stepcast {

/// The GPU's time of every step, given to operators of the forward pass.
struct Attribution {
  std::vector<ProfileStep> steps;
  double gpu_seconds = 0;      ///< of all steps
  double unknown_seconds = 0;  ///< that no rule could place
  double halved_seconds = 0;
  bool foreach_optimizer = false;
  int micro_batches = 1;  ///< whose gradients a step sums; each of them is a step here
  std::string precision;  ///< of most of the products' time
  std::string dropped;    ///< steps that were left out, and why; empty: none

  double attributed() const { return gpu_seconds > 0 ? 1 - unknown_seconds / gpu_seconds : 0; }
};

/// Gives each kernel to a step (by the time of its launch), an operator, and a pass.
/// Steps of one profile have the same operators in the same order.
/// @throws InputError one line: no steps, no backward pass, several GPUs, CUDA graphs, torch.compile, or
/// under 98 % of the GPU's time placed
Attribution attribute(const Profile& profile);

/// For each layer of a model, the indices of its operators. Layers that do no work have none.
using LayerMatch = std::vector<std::vector<int>>;

/// Finds an order of the model's layers, each after its inputs, whose kinds and (where recorded) shapes are
/// those of the operators. A program may run branches in another order than the model's file lists them.
/// Where several orders fit, one that goes on along a branch is preferred to one that jumps.
/// @param batch  samples of a step; 0: not known, no shapes are compared
/// @throws InputError one line that names the first operator that no order places
LayerMatch match_layers(const std::string& file, const std::vector<NetworkOperator>& operators,
                        const Model& model, std::int64_t batch);

/// The batch that the shapes tell; 0 if there are none.
std::int64_t recorded_batch(const std::vector<NetworkOperator>& operators);

/// The trace of a profile: every step of the profile is a sample of every layer and pass. The optimizer's
/// time is shared out by parameters; sums of gradients go to the layer whose output has several readers, as
/// in derived traces. What is approximate is said in the trace's flags.
Trace profile_trace(const Profile& profile, const Attribution& attribution, const Model& model,
                    const LayerMatch& match, std::int64_t batch);

/// A network that is known only from the operators of a profile.
struct ProfileNetwork {
  std::string text;  ///< of its network file
  Model model;       ///< what `text` says
  LayerMatch match;  ///< for each layer, its operator; none for a layer that only changes the shape
  int measured = 0;  ///< layers of kind `measured`
};

/// Writes the network of a profile: its operators in forward order. An operator whose shapes say all about it
/// becomes a layer of its kind; any other is of kind `measured`. A profile does not say which operator reads
/// which: a layer reads the one above if the sizes fit, else an output that another reader's gradient was
/// added to, else the latest output that fits. Without shapes all layers are `measured` and outputs are one
/// number a sample.
/// @param name        name of the network
/// @param parameters  elements of the trained arrays in forward order, for a profile without shapes; or empty
/// @throws InputError in one line: the sizes of parameters are not known, or do not fit
ProfileNetwork profile_network(const std::string& file, std::vector<NetworkOperator> operators,
                               std::int64_t batch, const std::string& name,
                               const std::vector<std::int64_t>& parameters);

}  // namespace stepcast
