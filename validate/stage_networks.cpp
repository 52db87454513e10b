#include "validate/stage_networks.hpp"

#include "validate/real_collectives.hpp"

namespace stepcast {
namespace {

/// Their kernels wait for the sums over the ranks.
void couple_shared(const SharedPart& part, Network& network) {
  for (std::size_t i = 0; i < part.shares.size(); ++i) {
    if (part.shares[i] && network.contains(i)) network.kernel(i).couple();
  }
}

}  // namespace

LayerRange layers_of_chunk(const NetworkSharing& sharing, std::size_t chunk, std::size_t chunks, int stage) {
  return sharing.stages.at(chunk * (sharing.stages.size() / chunks) + static_cast<std::size_t>(stage));
}

StageNetworks stage_networks(Backend& backend, const Model& model, const NetworkSharing& sharing,
                             const StagePlace& at, NetworkOptions options) {
  const std::uint64_t seed = options.data_seed;
  options.part.accumulate = sharing.micro_batches > 1;
  options.part.loss_weight = 1.0 / sharing.micro_batches;
  StageNetworks networks;
  if (sharing.ways > 1)
    networks.part = std::make_unique<SharedPart>(tensor_part(model, sharing.ways, at.place));
  options.part.shared = networks.part.get();
  const Model& own = networks.part ? networks.part->model : model;
  for (std::size_t run = static_cast<std::size_t>(at.stage); run < sharing.stages.size();
       run += static_cast<std::size_t>(at.stages)) {
    options.part.first = static_cast<std::size_t>(sharing.stages[run].first);
    options.part.last = static_cast<std::size_t>(sharing.stages[run].last);
    options.part.shares = nullptr;
    options.data_seed = seed;
    ChunkNetworks& chunk = networks.chunks.emplace_back();
    for (int i = 0; i < sharing.micro_batches; ++i, ++options.data_seed) {
      chunk.of_micro_batch.push_back(std::make_unique<Network>(backend, own, options));
      options.part.shares = chunk.of_micro_batch.front().get();
      if (networks.part) couple_shared(*networks.part, *chunk.of_micro_batch.back());
    }
  }
  return networks;
}

std::vector<std::vector<Slice>> owned_parts(const Plan& plan, int rank, const StageNetworks& networks,
                                            int stage) {
  std::vector<std::vector<Slice>> owned;
  for (std::size_t i = 0; i < networks.chunks.size(); ++i) {
    const LayerRange layers = layers_of_chunk(plan.sharing, i, networks.chunks.size(), stage);
    owned.push_back(scattered_parts(plan, rank, ArrayMap(networks.chunks[i].first()), layers));
  }
  return owned;
}

}  // namespace stepcast
