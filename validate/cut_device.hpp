#pragma once

#include <memory>

#include "kernels/network.hpp"
#include "models/device_part.hpp"
#include "scenarios/experiment.hpp"
#include "validate/rank_device.hpp"

namespace stepcast {

/// What one rank has of the network when every sample is cut over a group.
struct CutNetwork {
  std::unique_ptr<DevicePart> part;
  std::unique_ptr<Network> network;
};

/// What a network of the part at `place` of a group is told: batch and part.
NetworkOptions cut_options(const DevicePart& part, const Model& model, const NetworkSharing& sharing,
                           NetworkOptions options);

CutNetwork cut_network(Backend& backend, const Model& model, const NetworkSharing& sharing, int place,
                       const NetworkOptions& options);

/// Runs the kernels of a part of every sample, and binds halos, statistics and whole samples to the
/// collectives that carry them.
std::unique_ptr<RankDevice> cut_device(const CutNetwork& cut, const Model& model,
                                       const NetworkSharing& sharing, int place,
                                       DeviceLearning learning = {});

}  // namespace stepcast
