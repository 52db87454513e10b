#include "strategies/pipeline_chunks.hpp"

namespace stepcast {
namespace {

Bytes crossing(const Setting& setting, const GroupPlan& groups, int layer) {
  return static_cast<double>(groups.micro_batch) * crossing_elements(setting.model, layer) * groups.element;
}

/// ZeRO: gradients are scattered over the replicas instead of summed. @return gathers of updated parameters
std::vector<int> deal_out(const std::vector<Bucket>& buckets, GroupPlan& groups) {
  std::vector<int> gathers;
  for (const Bucket& bucket : buckets) {
    if (bucket.sum < 0) continue;
    groups.plan.collectives[static_cast<std::size_t>(bucket.sum)].kind = Collective::Kind::reduce_scatter;
    const Slice elements = groups.plan.collectives[static_cast<std::size_t>(bucket.sum)].buffer.elements;
    gathers.push_back(
        add_collective(groups.plan, Collective::Kind::all_gather, groups.replicas, bucket.gradient));
    if (gathers.back() < 0) continue;
    groups.plan.collectives.back().buffer = {Array::parameters, elements, bucket.gradient};
    groups.plan.collectives.back().layer = bucket.layers.first;
  }
  return gathers;
}

/// Chunk `chunk` of stage `stage`: every stage has one before any has a second.
PipelineChunk make_chunk(const Setting& setting, const PipelineOptions& options, std::pair<int, int> place,
                         const Stages& cuts, GroupPlan& groups) {
  const auto [stage, number] = place;
  const int run = number * options.stages + stage, runs = options.stages * options.chunks;
  const LayerRange layers{cuts[static_cast<std::size_t>(run)], cuts[static_cast<std::size_t>(run) + 1]};
  add_exchanges(layers, groups);
  const std::vector<Bucket> buckets = add_sums(layers, false, groups.replicas, groups);
  for (const Bucket& bucket : buckets) {
    if (bucket.sum >= 0)
      groups.plan.collectives[static_cast<std::size_t>(bucket.sum)].layer = bucket.layers.first;
  }
  const bool beside = options.group.overlap;
  PipelineChunk chunk;
  if (options.zero > 0) chunk.gathers = deal_out(buckets, groups);
  chunk.pieces = pieces_of(layers);
  chunk.passes = make_passes(groups.calls, layers,
                             sums_by_layer(beside ? buckets : std::vector<Bucket>{}, groups.calls.size()),
                             options.group.halo_overlap);
  for (const Bucket& bucket : buckets) {
    if (!beside && bucket.sum >= 0) chunk.sums.push_back(bucket.sum);
  }
  if (run > 0) {
    chunk.previous = (run - 1) % options.stages;
    chunk.chunk_of_previous = (run - 1) / options.stages;
    chunk.from_previous = crossing(setting, groups, layers.first);
  }
  if (run + 1 < runs) {
    chunk.next = (run + 1) % options.stages;
    chunk.chunk_of_next = (run + 1) / options.stages;
    chunk.to_next = crossing(setting, groups, layers.last);
  }
  return chunk;
}

}  // namespace

PipelineStage make_stage(const Setting& setting, const PipelineOptions& options, int number,
                         const Stages& cuts, GroupPlan& groups) {
  PipelineStage stage;
  stage.steps = setting.steps;
  stage.micro_batches = options.group.micro_batches;
  stage.prefetch = setting.prefetch;
  stage.step_overhead = options.group.training.step_overhead;
  stage.exchange_overhead = options.group.exchange_overhead;
  stage.recompute = options.group.recompute;
  stage.sum_every_micro_batch = options.zero == 2;
  stage.turns = turns(options.order, number, options.stages, options.group.micro_batches, options.chunks);
  for (int chunk = 0; chunk < options.chunks; ++chunk)
    stage.chunks.push_back(make_chunk(setting, options, {number, chunk}, cuts, groups));
  return stage;
}

}  // namespace stepcast
