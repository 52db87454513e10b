#pragma once

#include <memory>

#include "kernels/network.hpp"
#include "models/shared_part.hpp"
#include "validate/rank_device.hpp"

namespace stepcast {

/// What one rank has of a network whose layers the ranks of a group share.
struct SharedNetwork {
  std::unique_ptr<SharedPart> part;
  std::unique_ptr<Network> network;
};

/// What the rank at `place` of a group has of the layers.
SharedPart shared_part(const Model& model, const NetworkSharing& sharing, int place);
/// What its network is told: batch and part.
NetworkOptions shared_options(const SharedPart& part, const NetworkSharing& sharing, NetworkOptions options);

SharedNetwork shared_network(Backend& backend, const Model& model, const NetworkSharing& sharing, int place,
                             const NetworkOptions& options);

/// Runs the kernels of a part of every layer, and binds sums of outputs and of error signals to the
/// collectives that carry them.
std::unique_ptr<RankDevice> tensor_device(const SharedNetwork& shared, DeviceLearning learning = {});

}  // namespace stepcast
