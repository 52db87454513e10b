#include "runtime/learning/learning_shard.hpp"

#include <algorithm>
#include <optional>

#include "models/network/layer.hpp"
#include "models/partition/token_shard.hpp"
#include "runtime/collectives/rank_collectives.hpp"
#include "runtime/devices/pipeline_stage_chunk.hpp"
#include "runtime/devices/rank_shard.hpp"
#include "runtime/devices/spatial_device.hpp"
#include "runtime/learning/adversaries.hpp"
#include "strategies/collectives/schedule.hpp"
#include "strategies/plan/plan.hpp"

namespace stepcast {
namespace {

/// Index of the group of `group_size` ranks that a rank is in; ranks that are not workers count to the last
/// group.
int group_of(const Experiment& experiment, RankId rank, int group_size) {
  return std::min(rank.value, experiment.plan.workers - 1) / group_size;
}

/// Gives the first of `replicas` the parameters that others own. Each of them calls it.
/// @param owned  slices of the network's memory that a rank owns
void collect_owned(Transport& transport, const std::vector<RankId>& replicas, Network& network,
                   const std::function<std::vector<Slice>(RankId)>& owned) {
  const bool is_first = transport.rank() == replicas.front();
  std::vector<float> values = stored_parameters(network);
  for (const RankId owner : replicas) {
    if (owner == replicas.front() || (!is_first && owner != transport.rank())) continue;
    for (const Slice& slice : owned(owner)) {
      float* const part = values.data() + slice.begin;
      if (is_first)
        receive(transport, owner, part, slice.size());
      else
        send(transport, replicas.front(), part, slice.size());
    }
  }
  if (is_first) store_parameters(values.data(), network);
}

class ReplicaShard : public LearningShard {
 public:
  explicit ReplicaShard(const LearningPlace& place)
      : place_(place),
        network_(place.backend, place.experiment.model, network_options(place, place.rank.value)),
        writer_(place.backend) {}

  Batches::Split split() const override {
    if (place_.experiment.plan.chooses_mini_batches) return {0, 1, place_.batch};
    return {group_of(place_.experiment, place_.rank, 1), place_.experiment.plan.workers, place_.batch};
  }

  std::unique_ptr<RankDevice> device(DeviceLearning learning, Batches& batches) override {
    learning.owned = owned(place_.rank);
    learning.next_batch = [this, &batches] {
      writer_.write(batches.next(), place_.task.loss_layer, network_);
    };
    learning.choose_mini_batch = [&batches](std::int64_t number) { batches.seek(number); };
    if (place_.task.discriminator) train_against_each_other(learning, batches);
    return replica_device(network_, std::move(learning));
  }

  std::vector<Network*> networks() override { return {&network_}; }
  void load_parameters(const Parameters& whole) override { write_parameters(network_, whole); }
  bool holds_evaluated_parameters() const override {
    return place_.rank == RankId(0) || place_.experiment.plan.partition.shards_parameters;
  }
  Parameters gather_parameters(Transport* transport) override {
    const Plan& plan = place_.experiment.plan;
    if (plan.partition.shards_parameters)
      collect_owned(*transport, first_ranks(plan.workers), network_,
                    [this](RankId rank) { return owned(rank); });
    return read_parameters(network_);
  }

 private:
  std::vector<Slice> owned(RankId rank) const {
    return reduce_scattered_slices(place_.experiment.plan, rank, ParameterLayout(network_));
  }

  void train_against_each_other(DeviceLearning& learning, Batches& batches) {
    const LearningTask& task = place_.task;
    adversaries_.emplace(network_, Adversaries::Layers{*task.discriminator, task.loss_layer},
                         place_.experiment.learning->seed, split());
    learning.next_batch = [this, &batches, number = std::int64_t{0}]() mutable {
      adversaries_->begin(number++, batches.next().inputs);
    };
    learning.run_pass = [this](Work pass, LayerRange layers) { adversaries_->run(pass, layers); };
  }

  LearningPlace place_;
  Network network_;
  BatchWriter writer_;
  std::optional<Adversaries> adversaries_;  ///< if the network is a generator and a discriminator
};

/// The values that one rank takes of the samples of its group: a part of each sample, or some whole samples.
class SampleShare {
 public:
  /// @param map  shape of one sample, row-major
  SampleShare(const SpatialPartition& partition, bool is_split, const Shape& map, std::int64_t samples,
              int place)
      : each_(elements(map)) {
    if (is_split) {
      last_ = samples;
      runs_ = runs_of_shard(map, partition, place);
    } else {
      const std::int64_t mine = samples / device_count(partition.parts);
      first_ = place * mine;
      last_ = first_ + mine;
      runs_ = {{0, 0, each_}};
    }
  }

  std::vector<float> of(const std::vector<float>& all) const {
    std::vector<float> own;
    for (std::int64_t i = first_; i < last_; ++i) {
      for (const SampleRun& run : runs_) {
        const auto from = all.begin() + i * each_ + run.in_whole;
        own.insert(own.end(), from, from + run.length);
      }
    }
    return own;
  }

 private:
  std::int64_t each_, first_ = 0, last_ = 0;
  std::vector<SampleRun> runs_;
};

class TensorParallelShard : public LearningShard {
 public:
  explicit TensorParallelShard(const LearningPlace& place)
      : place_(place),
        partition_(place.experiment.plan.partition),
        own_(tensor_parallel_network(place.backend, place.experiment.model, partition_,
                                     place.rank.value % partition_.ways,
                                     network_options(place, place.rank.value / partition_.ways))),
        writer_(place.backend) {
    if (own_.part->spatial)
      inputs_.emplace(partition_.spatial, true, place.experiment.model.input, place.batch, own_.place);
  }

  Batches::Split split() const override {
    return {group_of(place_.experiment, place_.rank, partition_.ways),
            place_.experiment.plan.workers / partition_.ways, place_.batch};
  }

  std::unique_ptr<RankDevice> device(DeviceLearning learning, Batches& batches) override {
    learning.next_batch = [this, &batches] {
      const Batches::Batch& all = batches.next();
      writer_.write({inputs_ ? inputs_->of(all.inputs) : all.inputs, own_targets(all.targets)},
                    place_.task.loss_layer, *own_.network);
    };
    return tensor_parallel_device(own_, std::move(learning));
  }

  std::vector<Network*> networks() override { return {own_.network.get()}; }
  void load_parameters(const Parameters& whole) override {
    write_parameters(*own_.network, shard_of_parameters(whole, place_.experiment.model, partition_,
                                                        place_.rank.value % partition_.ways));
  }
  bool holds_evaluated_parameters() const override { return place_.rank.value < partition_.ways; }
  Parameters gather_parameters(Transport* transport) override {
    return gather_tensor_parallel_parameters(*transport, place_.experiment.model, partition_,
                                             read_parameters(*own_.network));
  }

 private:
  /// The targets of the rank's units, if it has no others.
  std::vector<float> own_targets(const std::vector<float>& all) const {
    const std::size_t each = own_.network->kernel(place_.task.loss_layer).targets()->elements();
    const std::size_t samples = place_.batch, of_sample = all.size() / samples;
    const std::size_t own = each / samples, first = own < of_sample ? own * own_.place : 0;
    std::vector<float> targets;
    for (std::size_t i = 0; i < samples; ++i) {
      const auto from = all.begin() + (i * of_sample + first);
      targets.insert(targets.end(), from, from + own);
    }
    return targets;
  }

  LearningPlace place_;
  const ModelPartition& partition_;
  TensorParallelNetwork own_;
  std::optional<SampleShare> inputs_;  ///< if ranks share the positions of maps
  BatchWriter writer_;
};

class SpatialLearningShard : public LearningShard {
 public:
  explicit SpatialLearningShard(const LearningPlace& place)
      : place_(place),
        partition_(place.experiment.plan.partition),
        ways_(device_count(partition_.spatial.parts)),
        own_(spatial_network(place.backend, place.experiment.model, partition_, place.rank.value % ways_,
                             {.seed = place.experiment.learning->seed,
                              .data_seed = 1 + place.rank.index(),
                              .optimizer = place.experiment.learning->optimizer})),
        inputs_(share(0, place.experiment.model.input)),
        targets_(share(place.task.loss_layer, map_of_targets())),
        writer_(place.backend) {}

  Batches::Split split() const override {
    return {group_of(place_.experiment, place_.rank, ways_), place_.experiment.plan.workers / ways_,
            place_.batch};
  }

  std::unique_ptr<RankDevice> device(DeviceLearning learning, Batches& batches) override {
    learning.next_step = [this, &batches] {
      const Batches::Batch& all = batches.next();
      writer_.write({inputs_.of(all.inputs), targets_.of(all.targets)}, place_.task.loss_layer,
                    *own_.network);
    };
    return spatial_device(own_, place_.experiment.model, partition_, place_.rank.value % ways_,
                          std::move(learning));
  }

  std::vector<Network*> networks() override { return {own_.network.get()}; }
  void load_parameters(const Parameters& whole) override { write_parameters(*own_.network, whole); }
  bool holds_evaluated_parameters() const override { return place_.rank == RankId(0); }
  Parameters gather_parameters(Transport*) override { return read_parameters(*own_.network); }

 private:
  SampleShare share(std::size_t layer, const Shape& map) const {
    return {partition_.spatial, partition_.spatial.splits(layer), map, place_.batch,
            place_.rank.value % ways_};
  }

  /// A partitioned loss has one target for each element of its input.
  Shape map_of_targets() const {
    const Model& model = place_.experiment.model;
    const std::size_t loss = place_.task.loss_layer;
    if (!partition_.spatial.splits(loss)) return place_.task.form.targets;
    return unflattened_shape(model, model.layers[loss].inputs.front(), partition_.spatial);
  }

  LearningPlace place_;
  const ModelPartition& partition_;
  int ways_;
  SpatialNetwork own_;
  SampleShare inputs_, targets_;
  BatchWriter writer_;
};

/// The values of some tokens of each sample. @param all  tokens of all samples; @param of_sample  of one
std::vector<float> values_of_tokens(const std::vector<float>& values, std::int64_t all,
                                    const std::vector<Rows>& tokens, std::int64_t of_sample) {
  const std::int64_t each = std::ssize(values) / all;
  std::vector<float> own;
  for (std::int64_t first = 0; first < all; first += of_sample) {
    for (const Rows& run : tokens)
      own.insert(own.end(), values.begin() + (first + run.first) * each,
                 values.begin() + (first + run.last) * each);
  }
  return own;
}

class PipelineStageShard : public LearningShard {
 public:
  explicit PipelineStageShard(const LearningPlace& place)
      : place_(place),
        plan_(place.experiment.plan),
        stage_(role_of(plan_, place.rank).value),
        replica_(role().member(place.rank) / ranks_of_samples(plan_.partition)),
        writer_(place.backend) {
    NetworkOptions options{.batch = place.batch, .optimizer = place.experiment.learning->optimizer};
    options.seed = place.experiment.learning->seed;
    options.data_seed = 1 + replica_ * plan_.partition.micro_batches;
    own_ = pipeline_stage_networks(place.backend, place.experiment.model, plan_.partition,
                                   {stage_, static_cast<int>(plan_.roles.size()), own_member()}, options);
  }

  Batches::Split split() const override {
    return {replica_, role().members / ranks_of_samples(plan_.partition), place_.batch};
  }

  bool reads_data() const override {
    for (const ChunkNetworks& chunk : own_.chunks) {
      if (chunk.first().contains(0) || chunk.first().contains(place_.task.loss_layer)) return true;
    }
    return false;
  }

  std::unique_ptr<RankDevice> device(DeviceLearning learning, Batches& batches) override {
    learning.next_step = [this, &batches] {
      for (std::size_t i = 0; reads_data() && i < own_.chunks.front().of_micro_batch.size(); ++i) {
        const Batches::Batch batch = own_tokens(batches.next());
        for (const ChunkNetworks& chunk : own_.chunks)
          writer_.write(batch, place_.task.loss_layer, *chunk.of_micro_batch[i]);
      }
    };
    return pipeline_stage_device(own_, plan_.partition, stage_,
                                 owned_slices(plan_, place_.rank, own_, stage_), std::move(learning));
  }

  std::vector<Network*> networks() override {
    std::vector<Network*> all;
    for (const ChunkNetworks& chunk : own_.chunks) all.push_back(&chunk.first());
    return all;
  }

  void load_parameters(const Parameters& whole) override {
    const Parameters own = shard_of_parameters(whole, place_.experiment.model, plan_.partition, own_place());
    for (Network* network : networks()) write_parameters(*network, own);
  }

  bool holds_evaluated_parameters() const override {
    return replica_ < plan_.partition.expert_ways || plan_.partition.shards_parameters;
  }

  Parameters gather_parameters(Transport* transport) override {
    if (plan_.partition.shards_parameters) {
      const std::vector<RankId> replicas = replicas_of_part();
      for (std::size_t i = 0; i < own_.chunks.size(); ++i) {
        const auto owned = [&](RankId rank) { return owned_slices(plan_, rank, own_, stage_).at(i); };
        collect_owned(*transport, replicas, own_.chunks[i].first(), owned);
      }
    }
    if (replica_ >= plan_.partition.expert_ways) return {};
    Parameters own;
    for (Network* network : networks()) {
      Parameters of_chunk = read_parameters(*network);
      own.resize(of_chunk.size());
      for (std::size_t i = 0; i < own.size(); ++i) {
        if (!of_chunk[i].empty()) own[i] = std::move(of_chunk[i]);
      }
    }
    return gather_pipeline_parameters(*transport, place_.experiment.model, plan_, own);
  }

 private:
  const Role& role() const { return plan_.roles[stage_]; }
  int own_place() const { return role().member(place_.rank) % plan_.partition.parts(); }
  int own_member() const { return place_in_stage(plan_.partition, role().member(place_.rank)); }

  /// The part of a batch that this rank computes with.
  Batches::Batch own_tokens(const Batches::Batch& all) const {
    const ModelPartition& partition = plan_.partition;
    if (!partition.tokens.any()) return all;
    const Model& model = place_.experiment.model;
    const auto own = [&](const std::vector<float>& values, bool targets) {
      return values_of_tokens(values, model.input.front() * partition.micro_batch,
                              tokens_of_rank(model, partition.ways, partition.tokens, own_member(), targets),
                              model.input.front());
    };
    return {own(all.inputs, false), own(all.targets, true)};
  }
  /// Ranks with the same part of the same layers.
  std::vector<RankId> replicas_of_part() const {
    std::vector<RankId> ranks;
    for (int member = own_place(); member < role().members; member += plan_.partition.ways)
      ranks.push_back(role().rank(member));
    return ranks;
  }

  LearningPlace place_;
  const Plan& plan_;
  int stage_, replica_;
  PipelineStageNetworks own_;
  BatchWriter writer_;
};

}  // namespace

NetworkOptions network_options(const LearningPlace& place, int replica) {
  NetworkOptions options;
  options.batch = place.batch;
  options.seed = place.experiment.learning->seed;
  options.data_seed = 1 + replica;
  options.optimizer = place.experiment.learning->optimizer;
  if (place.task.discriminator) options.part = Adversaries::part(*place.task.discriminator, place.batch);
  return options;
}

std::unique_ptr<LearningShard> learning_shard(const LearningPlace& place) {
  const Plan& plan = place.experiment.plan;
  const ModelPartition::Form form = plan.partition.form;
  if (!trains(plan, place.rank)) return std::make_unique<ReplicaShard>(place);
  if (form == ModelPartition::Form::stages) return std::make_unique<PipelineStageShard>(place);
  if (form == ModelPartition::Form::positions) return std::make_unique<SpatialLearningShard>(place);
  if (has_parts_of_layers(plan.partition)) return std::make_unique<TensorParallelShard>(place);
  return std::make_unique<ReplicaShard>(place);
}

}  // namespace stepcast
