#pragma once

#include <memory>
#include <vector>

#include "kernels/network.hpp"
#include "validate/rank_device.hpp"

namespace stepcast {

/// A run of layers: a network of them for every micro-batch of a step, all on the same parameters. They share
/// what the kernels need to be told.
struct ChunkNetworks {
  std::vector<std::unique_ptr<Network>> of_micro_batch;

  Network& first() const { return *of_micro_batch.front(); }
};

/// One stage of a pipeline: one run of layers, or several of an interleaved one.
struct StageNetworks {
  std::vector<ChunkNetworks> chunks;
};

/// @param stage    of `stages`; it has every so-manieth of the runs
/// @param options  batch: of a micro-batch; data_seed: of the first, counted up for the others
StageNetworks stage_networks(Backend& backend, const Model& model, const NetworkSharing& sharing, int stage,
                             int stages, NetworkOptions options);

/// Runs the kernels of one stage. Micro-batches go through each chunk in order, forward as well as backward,
/// so the n-th forward turn of a chunk in a step, what came for it and what is sent after it are those of
/// micro-batch n.
/// @param stages  of the model; this is number `stage`
/// @param owned   of each chunk: stored parameters that it updates; empty: all
std::unique_ptr<RankDevice> stage_device(const StageNetworks& networks, const NetworkSharing& sharing,
                                         int stage, std::vector<std::vector<Slice>> owned = {},
                                         DeviceLearning learning = {});

/// Of each chunk, the stored parameters that `rank` has the sums of after the plan's reduce-scatters.
std::vector<std::vector<Slice>> owned_parts(const Plan& plan, int rank, const StageNetworks& networks,
                                            int stage);

}  // namespace stepcast
