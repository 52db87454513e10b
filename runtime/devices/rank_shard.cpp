#include "runtime/devices/rank_shard.hpp"

#include <algorithm>
#include <utility>

#include "models/network/model.hpp"
#include "models/partition/token_shard.hpp"
#include "runtime/devices/gathered_maps.hpp"
#include "runtime/devices/halo_exchanges.hpp"
#include "runtime/devices/rank_device.hpp"
#include "runtime/devices/spatial_device.hpp"
#include "runtime/memory/parameters.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {

namespace {

class TensorParallelDevice : public RankDevice {
 public:
  TensorParallelDevice(const TensorParallelNetwork& shard, DeviceLearning learning)
      : RankDevice(*shard.network),
        network_(*shard.network),
        part_(*shard.part),
        learning_(std::move(learning)),
        map_(network_) {
    for (std::size_t i = 0; i < part_.shares.size(); ++i) {
      if (part_.shares[i]) network_.kernel(i).defer_sums();
    }
    for (std::size_t i = 0; i < part_.gathered.size(); ++i) {
      if (const auto& input = part_.gathered[i]; input && input->is_first)
        gathered_[i] = std::make_unique<GatheredMaps>(network_, *input, shard.place, shard.samples);
    }
    if (part_.spatial) halos_.emplace(network_, part_.whole, shard.spatial, shard.place);
  }

  void begin() override {
    network_.reset();
    if (learning_.start) learning_.start(network_);
    steps_ = 0;
    mini_batch_begun_ = false;
  }

  void compute(Work pass, LayerRange segments) override {
    if (pass == Work::forward && segments.first == 0) begin_mini_batch();
    if (pass == Work::backward && segments.first == 0) mini_batch_begun_ = false;
    const auto after = [this](std::size_t layer, Pass one) {
      const auto found = gathered_.find(layer);
      if (one == Pass::backward_data && found != gathered_.end() && !part_.gathered[layer]->is_partial_sum)
        found->second->keep_own_errors();
    };
    time_work([&] { pass == Work::update ? update() : run_segments(network_, pass, segments, after); });
  }

  CollectiveBinding bind_collective(const Collective& collective) override {
    const Array array = collective.buffer.array;
    if (collective.kind == Collective::Kind::exchange && array == Array::activations)
      begin_mini_batch();  // the first layer may exchange rows of the input before it computes
    if (collective.kind == Collective::Kind::exchange)
      return halos_.value().bind(collective, [this](const auto& work) { time_work(work); });
    if (array != Array::activations && array != Array::errors) return RankDevice::bind_collective(collective);
    if (collective.kind == Collective::Kind::all_gather ||
        collective.kind == Collective::Kind::reduce_scatter)
      return bind_gathered(*gathered_.at(collective.layer), array == Array::errors);
    LayerKernel& kernel = network_.kernel(collective.layer);
    return bind_layer_sum(kernel, array == Array::activations ? Pass::forward : Pass::backward_data,
                          collective);
  }

 protected:
  std::span<float> array(Array array) override { return array_of(network_, array); }
  Slice stored(const Slice& of_model) const override { return map_.stored(of_model); }

 private:
  CollectiveBinding bind_gathered(GatheredMaps& maps, bool errors) {
    time_work([&] { errors ? maps.pack_errors() : maps.pack_output(); });
    CollectiveBinding work = bind_backend_memory(maps.buffer());
    work.on_waited = [this, &maps, errors] {
      time_work([&] { errors ? maps.unpack_errors() : maps.unpack_outputs(); });
    };
    return work;
  }

  void begin_mini_batch() {
    if (!mini_batch_begun_ && learning_.next_batch) learning_.next_batch();
    mini_batch_begun_ = true;
  }

  void update() {
    network_.set_rate(learning_.rate.at(++steps_, learning_.summed), 1.0 / learning_.summed);
    run_layers(network_, Work::update, {0, static_cast<int>(part_.shares.size())});
  }

  Network& network_;
  const SharedPart& part_;
  DeviceLearning learning_;
  ParameterLayout map_;
  std::map<std::size_t, std::unique_ptr<GatheredMaps>> gathered_;  ///< by the first layer that reads them
  std::optional<HaloExchanges> halos_;                             ///< if ranks share the positions of maps
  std::int64_t steps_ = 0;                                         ///< steps of the optimizer
  /// From the first exchange or forward pass to the backward pass of the first layer.
  bool mini_batch_begun_ = false;
};

}  // namespace

bool has_parts_of_layers(const ModelPartition& partition) {
  using Form = ModelPartition::Form;
  return partition.form == Form::blocks || partition.form == Form::filters ||
         partition.form == Form::slices || partition.form == Form::machines;
}

SharedPart tensor_shard(const Model& model, const ModelPartition& partition, int place) {
  switch (partition.form) {
    case ModelPartition::Form::filters:
      return filter_shard(model, partition.ways, place);
    case ModelPartition::Form::slices:
    case ModelPartition::Form::machines:
      return machine_shard(model, partition.ways, partition.spatial.separate_border, place);
    default:
      return partition.expert_ways > 1 ? expert_shard(model, partition.expert_ways, place)
                                       : token_shard(model, partition.ways, partition.tokens, place);
  }
}

NetworkOptions tensor_parallel_options(const SharedPart& part, const ModelPartition& partition,
                                       NetworkOptions options) {
  options.batch = partition.micro_batch;
  options.part.tensor_shard = &part;
  if (part.spatial) options.part.spatial_shard = &*part.spatial;
  options.part.accumulate = partition.micro_batches > 1;
  return options;
}

TensorParallelNetwork tensor_parallel_network(Backend& backend, const Model& model,
                                              const ModelPartition& partition, int place,
                                              const NetworkOptions& options) {
  TensorParallelNetwork shard{std::make_unique<SharedPart>(tensor_shard(model, partition, place)), nullptr,
                              place, partition.micro_batch, partition.spatial};
  shard.network = std::make_unique<Network>(backend, shard.part->model,
                                            tensor_parallel_options(*shard.part, partition, options));
  return shard;
}

std::unique_ptr<RankDevice> tensor_parallel_device(const TensorParallelNetwork& shard,
                                                   DeviceLearning learning) {
  return std::make_unique<TensorParallelDevice>(shard, std::move(learning));
}

int machine_of(const Plan& plan, RankId rank) {
  const int machines = plan.partition.ways;
  if (trains(plan, rank)) return rank.value % machines;
  const int all = plan.endpoints.size();
  const int servers = std::ranges::count(plan.roles, false, &Role::training);
  return (rank.value - (all - servers)) / (servers / machines);
}

std::unique_ptr<RankDevice> machine_device(const TensorParallelNetwork& part, const Plan& plan, RankId rank,
                                           DeviceLearning learning) {
  const std::int64_t own = trainable_parameters(part.part->model);
  learning.summed = plan.summed_gradients;
  learning.first_element = machine_of(plan, rank) * own;
  learning.owned = {
      {0, ParameterLayout(*part.network).stored_elements()}};  // passes count segments, not layers
  if (trains(plan, rank)) {
    DeviceLearning passes;
    passes.next_batch = std::exchange(learning.next_batch, {});
    learning.passes = tensor_parallel_device(part, std::move(passes));
  }
  return replica_device(*part.network, std::move(learning));
}

RankShard rank_shard(const Model& model, const ModelPartition& partition, RankId rank) {
  RankShard shard;
  if (has_parts_of_layers(partition) || partition.tokens.any()) {
    shard.place = rank.value % (partition.ways * partition.tokens.context);
    shard.partition = partition.spatial;
    shard.tensor = std::make_unique<SharedPart>(tensor_shard(model, partition, shard.place));
    shard.options = tensor_parallel_options(*shard.tensor, partition, {});
  } else {
    const int place = rank.value % device_count(partition.spatial.parts);
    shard.spatial = std::make_unique<SpatialShard>(spatial_shard(model, partition.spatial, place));
    shard.options = spatial_options(*shard.spatial, model, partition, {});
  }
  return shard;
}

ShardDevices::ShardDevices(Backend& backend, RankId rank, CapturedShards&& captured)
    : backend_(backend), rank_(rank) {
  for (auto& [trace, one] : captured) {
    if (one.shard.spatial)
      spatial_[trace] = {std::move(one.shard.spatial), std::move(one.network)};
    else
      tensor_[trace] = {std::move(one.shard.tensor), std::move(one.network), one.shard.place,
                        one.shard.options.batch, one.shard.partition};
  }
}

std::unique_ptr<RankDevice> ShardDevices::device(const Experiment& experiment,
                                                 const std::filesystem::path& trace) {
  if (!role_of(experiment.plan, rank_).exists()) return nullptr;
  const ModelPartition::Form form = experiment.plan.partition.form;
  if (form == ModelPartition::Form::positions) return make_spatial_device(experiment, trace);
  if (form == ModelPartition::Form::machines) return make_machine_device(experiment, trace);
  return has_parts_of_layers(experiment.plan.partition) ? make_tensor_parallel_device(experiment, trace)
                                                        : nullptr;
}

std::unique_ptr<RankDevice> ShardDevices::make_spatial_device(const Experiment& experiment,
                                                              const std::filesystem::path& trace) {
  const ModelPartition& partition = experiment.plan.partition;
  const int place = rank_.value % device_count(partition.spatial.parts);
  SpatialNetwork& shard = spatial_[trace];
  if (shard.network == nullptr) {
    NetworkOptions options{.data_seed = 1 + rank_.index()};
    options.optimizer = {.learning_rate = 1e-3 / experiment.plan.workers};
    shard = spatial_network(backend_, experiment.model, partition, place, options);
  }
  return spatial_device(shard, experiment.model, partition, place);
}

std::unique_ptr<RankDevice> ShardDevices::make_machine_device(const Experiment& experiment,
                                                              const std::filesystem::path& trace) {
  const Plan& plan = experiment.plan;
  const int place = machine_of(plan, rank_);
  TensorParallelNetwork& part = (trains(plan, rank_) ? tensor_ : servers_)[trace];
  if (part.network == nullptr)
    part = tensor_parallel_network(backend_, experiment.model, plan.partition, place,
                                   {.data_seed = 1 + rank_.index()});
  return machine_device(part, plan, rank_);
}

std::unique_ptr<RankDevice> ShardDevices::make_tensor_parallel_device(const Experiment& experiment,
                                                                      const std::filesystem::path& trace) {
  const ModelPartition& partition = experiment.plan.partition;
  TensorParallelNetwork& shard = tensor_[trace];
  if (shard.network == nullptr) {
    const NetworkOptions options{.data_seed = 1 + rank_.index() / partition.ways};
    shard =
        tensor_parallel_network(backend_, experiment.model, partition, rank_.value % partition.ways, options);
  }
  DeviceLearning learning;
  learning.summed = experiment.plan.summed_gradients;
  return tensor_parallel_device(shard, std::move(learning));
}

}  // namespace stepcast
