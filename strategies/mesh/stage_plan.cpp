#include <algorithm>
#include <cctype>
#include <string_view>

#include "strategies/mesh/pipeline_stage.hpp"
#include "strategies/plan/buckets.hpp"

namespace stepcast {
namespace {

/// "block7_" of "block7_norm1", as layers are named that a network repeats; empty: the layer is not repeated.
std::string_view block_of(std::string_view name) {
  for (std::size_t i = 1; i < name.size(); ++i) {
    if (name[i] == '_' && std::isdigit(static_cast<unsigned char>(name[i - 1])) != 0)
      return name.substr(0, i + 1);
  }
  return {};
}

/// Runs of layers of one block, or of layers between blocks; last first.
std::vector<LayerRange> blocks(const Model& model) {
  std::vector<LayerRange> runs;
  int last = static_cast<int>(model.layers.size());
  for (int i = last - 1; i >= 0; --i) {
    const auto at = static_cast<std::size_t>(i);
    if (i > 0 && block_of(model.layers[at].name) == block_of(model.layers[at - 1].name)) continue;
    runs.push_back({i, last});
    last = i;
  }
  return runs;
}

/// The gradients of these layers in buckets of their size, or in one.
std::vector<LayerRange> buckets(const Model& model, const MeshOptions& options) {
  std::vector<LayerRange> runs;
  const Bytes size = std::max(options.group.bucket, Bytes{1});
  for (const Bucket& one : gradient_buckets(gradient_arrays(model), options.group.training.element(), size))
    runs.push_back(one.layers);
  return runs;
}

}  // namespace

std::vector<LayerRange> sharded_units(const Model& part, LayerRange layers, const MeshOptions& options) {
  std::vector<LayerRange> units;
  for (const LayerRange& run : options.blocks ? blocks(part) : buckets(part, options)) {
    const LayerRange here{std::max(run.first, layers.first), std::min(run.last, layers.last)};
    if (!here.empty()) units.push_back(here);
  }
  return units;
}

namespace {

/// Size of the activations of a micro-batch at the boundary before a layer.
Bytes boundary_bytes(const Setting& setting, const GroupPlan& groups, int layer) {
  return static_cast<double>(groups.micro_batch) * boundary_elements(setting.model, layer) * groups.element;
}

/// ZeRO: turns the sums of gradients into reduce-scatters over the devices of `shards`.
/// @returns all-gathers of the parameters
std::vector<CollectiveId> partition_sums(const std::vector<Bucket>& buckets, CommunicatorId shards,
                                         const MeshOptions& options, GroupPlan& groups) {
  std::vector<CollectiveId> gathers;
  for (const Bucket& bucket : buckets) {
    if (!bucket.sum.exists()) continue;
    groups.plan.collectives[bucket.sum.index()].kind = Collective::Kind::reduce_scatter;
    const Slice elements = groups.plan.collectives[bucket.sum.index()].buffer.elements;
    const Bytes parameters = groups.element / options.gradient * bucket.gradient;
    gathers.push_back(add_collective(groups.plan, Collective::Kind::all_gather, shards, parameters));
    if (!gathers.back().exists()) continue;
    groups.plan.collectives.back().buffer = {Array::parameters, elements, parameters};
    groups.plan.collectives.back().layer = bucket.layers.first;
  }
  return gathers;
}

/// The sums of the gradients of these layers, each with its first layer.
std::vector<Bucket> gradient_sums(LayerRange layers, CommunicatorId over, const MeshOptions& options,
                                  Bytes bucket, GroupPlan& groups) {
  std::vector<Bucket> buckets = add_sums(layers, false, over, {options.gradient, bucket}, groups);
  for (const Bucket& one : buckets) {
    if (one.sum.exists()) groups.plan.collectives[one.sum.index()].layer = one.layers.first;
  }
  return buckets;
}

/// A unit whose parameters `places.shards` partition.
ShardedUnit make_unit(LayerRange layers, const MeshOptions& options, const StageGroups& places,
                      GroupPlan& groups) {
  const std::vector<Bucket> sums = gradient_sums(layers, places.shards, options, kWholeModel, groups);
  ShardedUnit unit;
  unit.gathers = partition_sums(sums, places.shards, options, groups);
  for (const Bucket& one : sums) {
    if (!places.shard_copies.exists()) break;
    const CollectiveId copies = add_collective(groups.plan, Collective::Kind::all_reduce, places.shard_copies,
                                               one.gradient / static_cast<double>(options.shard_ways));
    if (!copies.exists()) continue;
    groups.plan.collectives.back().buffer.array = Array::gradients;
    groups.plan.collectives.back().layer = one.layers.first;
    unit.all_reduces.push_back(copies);
  }
  unit.passes =
      make_passes(groups.calls, layers, sums_by_layer(sums, groups.calls.size()), options.group.halo_overlap);
  return unit;
}

/// Sets the units of a chunk and its collectives outside passes.
void add_units(LayerRange layers, const MeshOptions& options, const StageGroups& places, GroupPlan& groups,
               PipelineChunk& chunk) {
  if (options.shards_parameters()) {
    for (const LayerRange& unit : sharded_units(groups.sharded.part, layers, options))
      chunk.units.insert(chunk.units.begin(), make_unit(unit, options, places, groups));
    return;
  }
  const bool overlaps = options.group.overlap;
  const std::vector<Bucket> buckets =
      gradient_sums(layers, places.copies, options, options.group.bucket, groups);
  if (options.shard != MemoryOptions::Zero::none)
    chunk.gathers = partition_sums(buckets, places.copies, options, groups);
  const auto sums = sums_by_layer(overlaps ? buckets : std::vector<Bucket>{}, groups.calls.size());
  chunk.units.push_back({make_passes(groups.calls, layers, sums, options.group.halo_overlap), {}, {}});
  for (const Bucket& bucket : buckets) {
    if (!overlaps && bucket.sum.exists()) chunk.sums.push_back(bucket.sum);
  }
}

/// Makes a chunk of a stage. Every stage has its first chunk before any stage has its second.
/// @param place  (stage, chunk)
PipelineChunk make_chunk(const Setting& setting, const MeshOptions& options, std::pair<int, int> place,
                         const Stages& starts, const StageGroups& places, GroupPlan& groups) {
  const auto [stage, number] = place;
  const int stages = options.mesh.pipeline;
  const int run = number * stages + stage, runs = stages * options.chunks;
  const LayerRange layers{starts[static_cast<std::size_t>(run)], starts[static_cast<std::size_t>(run) + 1]};
  add_exchanges(layers, groups);
  PipelineChunk chunk;
  chunk.segments = segments_of(layers);
  add_units(layers, options, places, groups, chunk);
  if (run > 0) {
    chunk.previous = RoleId((run - 1) % stages);
    chunk.chunk_of_previous = (run - 1) / stages;
    chunk.from_previous = boundary_bytes(setting, groups, layers.first);
  }
  if (run + 1 < runs) {
    chunk.next = RoleId((run + 1) % stages);
    chunk.chunk_of_next = (run + 1) / stages;
    chunk.to_next = boundary_bytes(setting, groups, layers.last);
  }
  return chunk;
}

}  // namespace

PipelineStage make_stage(const Setting& setting, const MeshOptions& options, int number, const Stages& starts,
                         const StageGroups& places, GroupPlan& groups) {
  PipelineStage stage;
  stage.steps = setting.steps;
  stage.micro_batches = options.group.micro_batches;
  stage.prefetch = setting.prefetch;
  stage.step_overhead = options.group.training.step_overhead;
  stage.exchange_overhead = options.group.exchange_overhead;
  stage.recompute = options.group.recompute;
  stage.reads_gradients = options.group.training.mixed;
  stage.reshard = options.reshard;
  stage.sum_every_micro_batch = options.sums_every_micro_batch();
  stage.actions =
      pipeline_schedule(options.order, number, options.mesh.pipeline, stage.micro_batches, options.chunks);
  for (int chunk = 0; chunk < options.chunks; ++chunk)
    stage.chunks.push_back(make_chunk(setting, options, {number, chunk}, starts, places, groups));
  return stage;
}

}  // namespace stepcast
