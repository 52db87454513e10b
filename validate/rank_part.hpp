#pragma once

#include <filesystem>
#include <map>
#include <memory>

#include "kernels/network.hpp"
#include "models/device_part.hpp"
#include "models/shared_part.hpp"
#include "strategies/plan.hpp"

namespace stepcast {

/// What a rank computes of a network whose samples or layers a group cuts, and what its network is told.
struct RankPart {
  std::unique_ptr<DevicePart> of_samples;  ///< null: whole ones
  std::unique_ptr<SharedPart> of_layers;   ///< null: whole ones
  NetworkOptions options = {};

  bool is_whole() const { return of_samples == nullptr && of_layers == nullptr; }
  /// That of the part. Not for whole ones.
  const Model& model() const { return of_samples ? of_samples->model : of_layers->model; }
};

/// A part whose network captures are through with.
struct CapturedPart {
  RankPart part;
  std::unique_ptr<Network> network;
};

using CapturedParts = std::map<std::filesystem::path, CapturedPart>;  ///< by the files of their traces

/// @param sharing  positions or blocks
RankPart rank_part(const Model& model, const NetworkSharing& sharing, int rank);

}  // namespace stepcast
