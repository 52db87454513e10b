#include "runtime/devices/rank_shard.hpp"

#include "runtime/devices/spatial_device.hpp"
#include "runtime/devices/tensor_parallel_device.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

RankShard rank_shard(const Model& model, const NetworkSharing& sharing, RankId rank) {
  RankShard shard;
  if (sharing.form == NetworkSharing::Form::blocks) {
    shard.tensor = std::make_unique<SharedPart>(tensor_shard(model, sharing, rank.value % sharing.ways));
    shard.options = tensor_parallel_options(*shard.tensor, sharing, {});
  } else {
    const int place = rank.value % device_count(sharing.partition.parts);
    shard.spatial = std::make_unique<SpatialShard>(spatial_shard(model, sharing.partition, place));
    shard.options = spatial_options(*shard.spatial, model, sharing, {});
  }
  return shard;
}

ShardDevices::ShardDevices(Backend& backend, RankId rank, CapturedShards captured)
    : backend_(backend), rank_(rank) {
  for (auto& [trace, one] : captured) {
    if (one.shard.spatial)
      spatial_[trace] = {std::move(one.shard.spatial), std::move(one.network)};
    else
      tensor_[trace] = {std::move(one.shard.tensor), std::move(one.network)};
  }
}

std::unique_ptr<RankDevice> ShardDevices::device(const Experiment& experiment,
                                                 const std::filesystem::path& trace) {
  if (!role_of(experiment.plan, rank_).exists()) return nullptr;
  const NetworkSharing::Form form = experiment.plan.sharing.form;
  if (form == NetworkSharing::Form::positions) return make_spatial_device(experiment, trace);
  return form == NetworkSharing::Form::blocks ? make_tensor_parallel_device(experiment, trace) : nullptr;
}

std::unique_ptr<RankDevice> ShardDevices::make_spatial_device(const Experiment& experiment,
                                                              const std::filesystem::path& trace) {
  const NetworkSharing& sharing = experiment.plan.sharing;
  const int place = rank_.value % device_count(sharing.partition.parts);
  SpatialNetwork& shard = spatial_[trace];
  if (shard.network == nullptr) {
    NetworkOptions options{.data_seed = static_cast<std::uint64_t>(1 + rank_.value)};
    options.optimizer = {.learning_rate = 1e-3 / experiment.plan.workers};
    shard = spatial_network(backend_, experiment.model, sharing, place, options);
  }
  return spatial_device(shard, experiment.model, sharing, place);
}

std::unique_ptr<RankDevice> ShardDevices::make_tensor_parallel_device(const Experiment& experiment,
                                                                      const std::filesystem::path& trace) {
  const NetworkSharing& sharing = experiment.plan.sharing;
  TensorParallelNetwork& shard = tensor_[trace];
  if (shard.network == nullptr) {
    const NetworkOptions options{.data_seed = static_cast<std::uint64_t>(1 + rank_.value / sharing.ways)};
    shard = tensor_parallel_network(backend_, experiment.model, sharing, rank_.value % sharing.ways, options);
  }
  DeviceLearning learning;
  learning.summed = experiment.plan.summed_gradients;
  return tensor_parallel_device(shard, std::move(learning));
}

}  // namespace stepcast
