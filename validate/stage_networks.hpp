#pragma once

#include <memory>
#include <vector>

#include "kernels/network.hpp"
#include "models/shared_part.hpp"
#include "strategies/plan.hpp"

namespace stepcast {

/// A run of layers: a network of them for every micro-batch of a step, all on the same parameters. They share
/// what the kernels need to be told.
struct ChunkNetworks {
  std::vector<std::unique_ptr<Network>> of_micro_batch;

  Network& first() const { return *of_micro_batch.front(); }
};

/// One stage of a pipeline: one run of layers, or several of an interleaved one.
struct StageNetworks {
  std::unique_ptr<SharedPart> part;  ///< where ranks share its layers; else null
  std::vector<ChunkNetworks> chunks;
};

/// Which stage of how many, and which of the ranks that share its layers.
struct StagePlace {
  int stage = 0, stages = 1, place = 0;
};

/// @param at       it has every so-manieth of the runs
/// @param options  batch: of a micro-batch; data_seed: of the first, counted up for the others
StageNetworks stage_networks(Backend& backend, const Model& model, const NetworkSharing& sharing,
                             const StagePlace& at, NetworkOptions options);

/// Of each chunk, the stored parameters that `rank` has the sums of after the plan's reduce-scatters.
std::vector<std::vector<Slice>> owned_parts(const Plan& plan, int rank, const StageNetworks& networks,
                                            int stage);

/// Layers of the chunk of that number, of so many, of a stage.
LayerRange layers_of_chunk(const NetworkSharing& sharing, std::size_t chunk, std::size_t chunks, int stage);

}  // namespace stepcast
