#include "strategies/mesh/stage_plan.hpp"

#include <algorithm>

#include "models/cost/pass_cost.hpp"
#include "strategies/mesh/spatial_axis.hpp"
#include "strategies/mesh/zero_bubble.hpp"
#include "strategies/plan/buckets.hpp"

namespace stepcast {
namespace {

/// Layers of one block each, and those between blocks; last first.
std::vector<LayerRange> blocks(const Model& model) {
  std::vector<int> ends{0};
  for (const LayerBlock& block : model.blocks) ends.insert(ends.end(), {block.first, block.last});
  ends.push_back(model.layers.size());
  std::vector<LayerRange> runs;
  for (std::size_t i = ends.size() - 1; i > 0; --i) {
    if (ends[i - 1] < ends[i]) runs.push_back({ends[i - 1], ends[i]});
  }
  return runs;
}

/// What of each run lies in `layers`.
std::vector<LayerRange> clamped(const std::vector<LayerRange>& runs, LayerRange layers) {
  std::vector<LayerRange> inside;
  for (const LayerRange& run : runs) {
    const LayerRange here{std::max(run.first, layers.first), std::min(run.last, layers.last)};
    if (!here.empty()) inside.push_back(here);
  }
  return inside;
}

/// The gradients of these layers in buckets of their size, or in one.
std::vector<LayerRange> buckets(const Model& model, const MeshOptions& options) {
  std::vector<LayerRange> runs;
  BucketSize size = options.group.bucket;
  if (size.holds == BucketSize::Holds::array) size = {.least = {1}};  // layers are not divided
  for (const Bucket& one : gradient_buckets(gradient_arrays(model), options.group.training.element(), size))
    runs.push_back(one.layers);
  return runs;
}

}  // namespace

std::vector<LayerRange> sharded_units(const Model& part, LayerRange layers, const MeshOptions& options) {
  return clamped(options.blocks ? blocks(part) : buckets(part, options), layers);
}

namespace {

/// Size of the activations of a micro-batch at the boundary before a layer, of the tokens of one device.
Bytes boundary_bytes(const Setting& setting, const MeshOptions& options, const GroupPlan& groups, int layer) {
  const int tokens = options.mesh.context * (options.sequence_parallel ? options.mesh.tensor : 1);
  return groups.micro_batch * boundary_elements(setting.model, layer) * groups.element / tokens;
}

/// ZeRO: turns the sums of gradients into reduce-scatters.
/// @returns all-gathers of the parameters
std::vector<CollectiveId> partition_sums(const std::vector<Bucket>& buckets, const MeshOptions& options,
                                         GroupPlan& groups) {
  std::vector<CollectiveId> gathers;
  for (const Bucket& bucket : buckets) {
    if (!bucket.sum.exists()) continue;
    groups.plan.collectives[bucket.sum.index()].kind = Collective::Kind::reduce_scatter;
    const Collective sum = groups.plan.collectives[bucket.sum.index()];
    const Bytes parameters = groups.element / options.gradient * bucket.gradient;
    gathers.push_back(
        add_collective(groups.plan, Collective::Kind::all_gather, sum.communicator, parameters));
    if (!gathers.back().exists()) continue;
    groups.plan.collectives.back().buffer = {Array::parameters, sum.buffer.elements, parameters};
    groups.plan.collectives.back().layer = bucket.layers.first;
  }
  return gathers;
}

/// The sums of the gradients of these layers, each with its first layer.
std::vector<Bucket> gradient_sums(LayerRange layers, const MeshOptions& options, const StageGroups& places,
                                  const BucketSize& bucket, GroupPlan& groups) {
  const GradientSizes sizes{options.gradient, bucket};
  std::vector<Bucket> buckets = add_sums(layers, true, places.common, sizes, groups);
  for (const Bucket& one : add_sums(layers, false, places.own, sizes, groups)) buckets.push_back(one);
  for (const Bucket& one : buckets) {
    if (one.sum.exists()) groups.plan.collectives[one.sum.index()].layer = one.layers.first;
  }
  return buckets;
}

/// The sums of a run of layers and the gathers after them: those of the other stage that has the run, or new
/// ones.
RunSums sums_of_run(LayerRange layers, const MeshOptions& options, const StageGroups& places,
                    GroupPlan& groups) {
  if (places.made && places.made->contains(layers.first)) return places.made->at(layers.first);
  RunSums sums{gradient_sums(layers, options, places, options.group.bucket, groups), {}};
  if (options.shard != MemoryOptions::Zero::none)
    sums.gathers = partition_sums(sums.buckets, options, groups);
  if (places.made) (*places.made)[layers.first] = sums;
  return sums;
}

/// Adds an all-reduce of gradients. @param layers  those of the gradients
CollectiveId add_gradient_sum(LayerRange layers, CommunicatorId over, Bytes size, GroupPlan& groups) {
  const CollectiveId sum = add_collective(groups.plan, Collective::Kind::all_reduce, over, size);
  if (!sum.exists()) return sum;
  groups.plan.collectives.back().buffer.array = Array::gradients;
  groups.plan.collectives.back().layer = layers.first;
  return sum;
}

/// Sets the passes of a unit. @param sums  of gradients, by layer
void set_passes(LayerRange layers, const std::vector<std::vector<CollectiveId>>& sums,
                const MeshOptions& options, const GroupPlan& groups, ShardedUnit& unit) {
  const bool splits = options.splits_backward();
  const int count = groups.calls.size();
  const std::vector<std::vector<CollectiveId>> none(groups.calls.size());
  unit.passes = make_passes(groups.calls, layers, splits ? none : sums, options.group.halo_overlap);
  if (splits) unit.weights = weight_passes(layers, (kSegmentsPerLayer + 1) * count, sums);
  if (options.dual()) unit.whole = whole_backward(unit.passes, (kSegmentsPerLayer + 1) * count, sums);
  unit.recomputed = make_recomputation(options.recomputed, layers, groups);
}

/// Numbers the gradients of a unit from the first layer of its chunk on, as those of a whole chunk are.
void count_from(const Model& part, LayerRange before, const std::vector<Bucket>& sums, Plan& plan) {
  std::int64_t elements = 0;
  for (int i = before.first; i < before.last; ++i)
    elements += static_cast<std::int64_t>(trainable(part.layers[static_cast<std::size_t>(i)]));
  for (const Bucket& one : sums) {
    if (!one.sum.exists()) continue;
    Slice& slice = plan.collectives[one.sum.index()].buffer.elements;
    if (slice.size() > 0) slice = {slice.begin + elements, slice.end + elements};
  }
}

/// A unit whose parameters the devices partition. @param first  layer of its chunk
ShardedUnit make_unit(LayerRange layers, int first, const MeshOptions& options, const StageGroups& places,
                      GroupPlan& groups) {
  const std::vector<Bucket> sums = gradient_sums(layers, options, places, kWholeModel, groups);
  count_from(groups.sharded.part, {first, layers.first}, sums, groups.plan);
  ShardedUnit unit;
  unit.gathers = partition_sums(sums, options, groups);
  for (const Bucket& one : sums) {
    if (!places.shard_copies.exists()) break;
    const Slice elements = groups.plan.collectives[one.sum.index()].buffer.elements;
    unit.all_reduces.push_back(add_gradient_sum(
        one.layers, places.shard_copies, one.gradient / static_cast<double>(options.shard_ways), groups));
    groups.plan.collectives.back().by_group = true;
    groups.plan.collectives.back().groups_of_share = options.mesh.tensor;
    groups.plan.collectives.back().buffer.elements = elements;
  }
  set_passes(layers, sums_by_layer(sums, groups.calls.size()), options, groups, unit);
  return unit;
}

/// Sums the gradients of layers whose tokens the tensor axis divides, after the last backward pass. Source:
/// Megatron-Core, finalize_model_grads.
void add_token_sums(LayerRange layers, const MeshOptions& options, GroupPlan& groups, PipelineChunk& chunk) {
  const ShardedModel& sharded = groups.sharded;
  double elements = 0;
  for (int i = layers.first; i < layers.last; ++i) {
    if (sharded.divided_tokens.empty() || !sharded.divided_tokens[i]) continue;
    for (const ParameterTensor& tensor : sharded.part.layers[i].parameters)
      elements += tensor.trainable ? tensor.elements() : 0;
  }
  const CollectiveId sum = add_gradient_sum(layers, groups.group, elements * options.gradient, groups);
  if (sum.exists()) chunk.sums.push_back(sum);
}

/// Units whose parameters the devices do not partition, last first: what is computed again together, before
/// its backward pass.
std::vector<LayerRange> whole_units(const Model& part, LayerRange layers, const MeshOptions& options) {
  if (options.dual()) return {layers};
  if (options.synchronizes_checkpoints) return clamped(blocks(part), layers);
  std::vector<LayerRange> units{{layers.first, layers.first}};
  for (int i = layers.first; i < layers.last; ++i) {
    const auto& how = options.recomputed;
    if (i > layers.first && !how.empty() && how[i].segment != how[i - 1].segment) units.push_back({i, i});
    units.back().last = i + 1;
  }
  std::ranges::reverse(units);
  return units;
}

/// Sets the units of a chunk and its collectives outside passes.
void add_units(LayerRange layers, const MeshOptions& options, const StageGroups& places, GroupPlan& groups,
               PipelineChunk& chunk) {
  if (options.shards_parameters()) {
    for (const LayerRange& unit : sharded_units(groups.sharded.part, layers, options))
      chunk.units.insert(chunk.units.begin(), make_unit(unit, layers.first, options, places, groups));
    return;
  }
  const bool overlaps = options.group.overlap || options.waits_for_scatters();
  const auto [buckets, gathers] = sums_of_run(layers, options, places, groups);
  chunk.gathers = gathers;
  const auto sums = sums_by_layer(overlaps ? buckets : std::vector<Bucket>{}, groups.calls.size());
  for (const LayerRange& unit : whole_units(groups.sharded.part, layers, options)) {
    chunk.units.insert(chunk.units.begin(), ShardedUnit{});
    set_passes(unit, sums, options, groups, chunk.units.front());
  }
  for (const Bucket& bucket : buckets) {
    if (!overlaps && bucket.sum.exists()) chunk.sums.push_back(bucket.sum);
  }
}

/// The number of a chunk's run of layers. @param place  (stage, chunk)
int run_of(const MeshOptions& options, std::pair<int, int> place) {
  const auto [stage, chunk] = place;
  const int stages = options.mesh.pipeline;
  if (options.dual()) return chunk == 0 ? stage : stages - 1 - stage;
  return chunk * stages + stage;
}

/// Sets the stages before and after a chunk. Every stage has its first chunk before any stage has its second;
/// with dual_pipe a run of layers has the same chunk in the next stage, or in the one before.
void set_neighbours(const MeshOptions& options, std::pair<int, int> place, PipelineChunk& chunk) {
  const int stages = options.mesh.pipeline, run = run_of(options, place);
  const auto stage_of = [&](int other) {
    return RoleId(options.dual() && place.second == 1 ? stages - 1 - other : other % stages);
  };
  const auto chunk_of = [&](int other) { return options.dual() ? place.second : other / stages; };
  chunk.previous = run > 0 ? stage_of(run - 1) : RoleId{};
  chunk.next = run + 1 < options.runs() ? stage_of(run + 1) : RoleId{};
  if (run > 0) chunk.chunk_of_previous = chunk_of(run - 1);
  if (run + 1 < options.runs()) chunk.chunk_of_next = chunk_of(run + 1);
}

/// Makes a chunk of a stage. @param place  (stage, chunk)
PipelineChunk make_chunk(const Setting& setting, const MeshOptions& options, std::pair<int, int> place,
                         const Stages& starts, const StageGroups& places, GroupPlan& groups) {
  const int run = run_of(options, place);
  const LayerRange layers{starts[run], starts[run + 1]};
  for (int i = layers.first; i < layers.last; ++i)
    groups.calls[static_cast<std::size_t>(i)] = {};  // dual_pipe: those of another stage
  add_exchanges(layers, groups);
  if (options.divides_positions()) add_position_exchanges(setting, options, layers, groups);
  if (options.division == LayerDivision::machines && options.mesh.tensor > 1)
    add_halos(setting, partition(setting.model, options.mesh.tensor).spatial, layers,
              {groups.group, LocalFilters::own_positions}, groups);
  PipelineChunk chunk;
  chunk.segments = segments_of(layers);
  add_units(layers, options, places, groups, chunk);
  add_token_sums(layers, options, groups, chunk);
  set_neighbours(options, place, chunk);
  if (run > 0) chunk.from_previous = boundary_bytes(setting, options, groups, layers.first);
  if (run + 1 < options.runs()) chunk.to_next = boundary_bytes(setting, options, groups, layers.last);
  return chunk;
}

/// Trained parameters of the layers whose update this device shares.
double updated_parameters(const PipelineStage& stage, const MeshOptions& options, const Model& part) {
  double sum = 0;
  for (const PipelineChunk& chunk : stage.chunks) {
    const int first = chunk.segments.first / kSegmentsPerLayer,
              last = chunk.segments.last / kSegmentsPerLayer;
    for (int i = first; i < last; ++i) {
      const Layer& layer = part.layers[i];
      const int copies = layer.kind == LayerKind::experts ? options.mesh.expert : 1;
      sum += trainable(layer) * copies;
    }
  }
  return options.shard == MemoryOptions::Zero::none ? sum : sum / options.shard_ways;
}

}  // namespace

Seconds host_update_time(double parameters, const MeshOptions& options) {
  constexpr double kAdamBytes = 4 * 4 + 3 * 4 + kHalfBytes;
  const Bytes copied = parameters * options.group.training.element();
  return Bytes{kAdamBytes * parameters} / options.host_memory + copied / options.host_link;
}

PipelineStage make_stage(const Setting& setting, const MeshOptions& options, int number, const Stages& starts,
                         const StageGroups& places, GroupPlan& groups) {
  PipelineStage stage;
  stage.steps = setting.steps;
  stage.micro_batches = options.micro_batches_of_chunk();
  stage.prefetch = setting.prefetch;
  stage.step_overhead = options.group.training.step_overhead;
  stage.exchange_overhead = options.group.exchange_overhead;
  stage.recompute_last = options.recompute_last;
  stage.reads_gradients = options.group.training.mixed;
  stage.synchronizes_units = options.synchronizes_checkpoints;
  stage.waits_for_scatters = options.waits_for_scatters();
  stage.reshard = options.reshard;
  stage.sum_every_micro_batch = options.sums_every_micro_batch();
  stage.actions = pipeline_schedule(options.order, number, options.mesh.pipeline, options.group.micro_batches,
                                    options.chunks);
  for (int chunk = 0; chunk < options.chunks; ++chunk)
    stage.chunks.push_back(make_chunk(setting, options, {number, chunk}, starts, places, groups));
  if (options.offload == Offload::optimizer)
    stage.host_update = host_update_time(updated_parameters(stage, options, groups.sharded.part), options);
  return stage;
}

}  // namespace stepcast
