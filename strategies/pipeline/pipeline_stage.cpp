#include "strategies/pipeline/pipeline_stage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "models/layer_times/trace.hpp"
#include "strategies/model_parallel/layer_segments.hpp"

namespace stepcast {
namespace {

void read_chunks(const YamlMap& map, PipelineOptions& options) {
  const bool interleaved = options.order == PipelineOrder::interleaved;
  if (const auto chunks = map.maybe("chunks")) {
    options.chunks = static_cast<int>(chunks->integer(2, 1000));
    if (!interleaved) chunks->refuse("only valid with schedule: interleaved");
  } else if (interleaved) {
    map.at("chunks", "chunks of layers that each stage has, an integer >= 2");
  }
  const int micro_batches = options.group.micro_batches;
  if (interleaved && options.stages == 1) map.at("schedule").refuse("interleaved needs stages >= 2, got 1");
  if (interleaved && micro_batches % options.stages != 0) {
    map.at(map.has("micro_batches") ? "micro_batches" : "schedule")
        .refuse(fmt::format("interleaved needs a multiple of the {} stages, got {} micro-batches",
                            options.stages, micro_batches));
  }
}

void read_zero_stage(const YamlMap& map, PipelineOptions& options) {
  const auto zero = map.maybe("zero");
  if (!zero) return;
  options.zero = static_cast<int>(zero->integer(0, 2));
  if (options.zero == 2 && !options.group.overlap)
    zero->refuse(
        "2 is only valid with overlap: true, because gradients are scattered during every backward pass");
}

}  // namespace

PipelineOptions read_pipeline_options(const YamlMap& map) {
  PipelineOptions options;
  options.group = read_group_options(map);
  const auto count = [&](const char* key) { return static_cast<int>(map.at(key).integer(1, 100'000)); };
  map.at("stages", "an integer >= 1");
  options.stages = count("stages");
  if (map.has("tensor")) options.tensor = count("tensor");
  if (map.has("micro_batches")) options.group.micro_batches = count("micro_batches");
  if (const auto order = map.maybe("schedule"))
    options.order = static_cast<PipelineOrder>(order->one_of({"naive", "gpipe", "1f1b", "interleaved"}));
  read_chunks(map, options);
  read_zero_stage(map, options);
  return options;
}

namespace {

/// Runs of as many blocks each. The first also has the layers before the blocks, the last those after them.
Stages equal_blocks(const YamlValue& split, const Model& model, int runs) {
  const std::size_t blocks = model.blocks.size(), count = static_cast<std::size_t>(runs);
  if (blocks == 0 || blocks % count != 0)
    split.refuse(fmt::format("{} blocks cannot be divided equally among {} stages; give split: time or "
                             "split_points",
                             blocks, runs));
  Stages starts{0};
  for (std::size_t run = 1; run < count; ++run) starts.push_back(model.blocks[run * (blocks / count)]);
  starts.push_back(static_cast<int>(model.layers.size()));
  return starts;
}

}  // namespace

Stages first_layers_of_runs(const YamlMap& map, const Setting& setting, const Trace& times, int runs) {
  const auto named = map.maybe("split_points");
  const auto split = map.maybe("split");
  const bool by_blocks = split && split->one_of({"time", "blocks"}) == 1;
  if (!named && by_blocks) return equal_blocks(*split, setting.model, runs);
  if (!named) {
    std::vector<double> seconds;
    for (const LayerTrace& layer : times.layers) {
      seconds.push_back(median(layer.forward.seconds).value + median(layer.backward_data.seconds).value +
                        median(layer.backward_weights.seconds).value);
    }
    if (seconds.size() < static_cast<std::size_t>(runs))
      map.at("stages").refuse(fmt::format("{} layers cannot form {} stages", seconds.size(), runs));
    return balanced_stages(seconds, runs);
  }
  Stages starts{0};
  for (const YamlValue& name : named->list()) {
    const auto& layers = setting.model.layers;
    const auto found = std::find_if(layers.begin() + starts.back(), layers.end(),
                                    [&](const Layer& layer) { return layer.name == name.text(); });
    if (found == layers.end() || found == layers.begin() + starts.back())
      name.expected("the first layer of a stage, after that of the stage before");
    starts.push_back(static_cast<int>(found - layers.begin()));
  }
  if (static_cast<int>(starts.size()) != runs)
    named->expected(fmt::format("the first layers of stages 2 to {}", runs));
  starts.push_back(static_cast<int>(setting.model.layers.size()));
  return starts;
}

namespace {

// Tags of messages to a chunk: activations from below, error signals from above.
MessageTag activations_tag(int chunk) {
  return MessageTag(1 + 2 * chunk);
}
MessageTag errors_tag(int chunk) {
  return MessageTag(2 + 2 * chunk);
}

/// Step 1.
SubProgram receive_input(Worker& worker, const PipelineChunk& chunk, const PipelineAction& action,
                         std::deque<Pending>& loads) {
  const bool forward = action.pass == Work::forward;
  if (forward && !chunk.previous.exists()) {
    loads.push_back(worker.start_load(worker.workload().input));
    co_await worker.finished(std::move(loads.front()));
    loads.pop_front();
  } else if (forward) {
    co_await worker.receive(activations_tag(action.chunk), chunk.previous);
  } else if (chunk.next.exists()) {
    co_await worker.receive(errors_tag(action.chunk), chunk.next);
  }
}

/// Step 3.
void send_output(Worker& worker, const PipelineChunk& chunk, Work pass, std::vector<Pending>& sent) {
  const bool forward = pass == Work::forward;
  const RoleId role = forward ? chunk.next : chunk.previous;
  if (!role.exists()) return;
  Message message;
  message.tag = forward ? activations_tag(chunk.chunk_of_next) : errors_tag(chunk.chunk_of_previous);
  message.buffer = {
      forward ? Array::activations : Array::errors, {}, forward ? chunk.to_next : chunk.from_previous};
  sent.push_back(worker.start_send(role, message));
}

void start(Worker& worker, const std::vector<CollectiveId>& collectives, std::vector<Pending>& pending) {
  for (const CollectiveId one : collectives) pending.push_back(worker.start_collective(one));
}

}  // namespace

int chunk_of_tag(MessageTag tag) {
  return (tag.value - 1) / 2;
}

Program pipeline_stage(Worker& worker, const PipelineStage& options) {
  std::deque<Pending> loads;
  const bool first = !options.chunks.front().previous.exists();
  for (int ahead = 0; first && ahead < options.prefetch; ++ahead)
    loads.push_back(worker.start_load(worker.workload().input));

  for (int step = 0; step < options.steps; ++step) {
    if (options.step_overhead.value > 0) co_await worker.pause(options.step_overhead);
    std::vector<Pending> sent, sums, gathered;
    for (const PipelineAction& action : options.actions) {
      const PipelineChunk& chunk = options.chunks[static_cast<std::size_t>(action.chunk)];
      co_await receive_input(worker, chunk, action, loads);
      if (chunk.previous.exists() || chunk.next.exists()) worker.synchronize();  // 1. and 3.
      const bool last = action.micro_batch + 1 == options.micro_batches;
      if (action.pass == Work::backward && options.recompute) {
        const PassRun again{Work::forward, options.exchange_overhead, false};
        co_await run_pass(worker, chunk.passes, again, sums);
      }
      const PassRun run{action.pass, options.exchange_overhead, last || options.sum_every_micro_batch};
      co_await run_pass(worker, chunk.passes, run, sums);  // 2.
      send_output(worker, chunk, action.pass, sent);
    }
    for (const PipelineChunk& chunk : options.chunks) start(worker, chunk.sums, sums);  // 4.
    for (Pending& message : sent) co_await worker.finished(std::move(message));
    for (Pending& sum : sums) co_await worker.finished(std::move(sum));
    if (options.reads_gradients) worker.synchronize();
    for (const PipelineChunk& chunk : options.chunks)  // 5.
      co_await worker.finished(worker.start_compute(Work::update, chunk.segments));
    for (const PipelineChunk& chunk : options.chunks) start(worker, chunk.gathers, gathered);  // 6.
    for (Pending& parameters : gathered) co_await worker.finished(std::move(parameters));
    worker.end_step();
  }
}

namespace {

/// Size of the activations of a micro-batch at the boundary before a layer.
Bytes boundary_bytes(const Setting& setting, const GroupPlan& groups, int layer) {
  return static_cast<double>(groups.micro_batch) * boundary_elements(setting.model, layer) * groups.element;
}

/// ZeRO: turns the sums of gradients into reduce-scatters over the replicas.
/// @returns all-gathers of the updated parameters
std::vector<CollectiveId> partition_sums(const std::vector<Bucket>& buckets, GroupPlan& groups) {
  std::vector<CollectiveId> gathers;
  for (const Bucket& bucket : buckets) {
    if (!bucket.sum.exists()) continue;
    groups.plan.collectives[bucket.sum.index()].kind = Collective::Kind::reduce_scatter;
    const Slice elements = groups.plan.collectives[bucket.sum.index()].buffer.elements;
    gathers.push_back(
        add_collective(groups.plan, Collective::Kind::all_gather, groups.replicas, bucket.gradient));
    if (!gathers.back().exists()) continue;
    groups.plan.collectives.back().buffer = {Array::parameters, elements, bucket.gradient};
    groups.plan.collectives.back().layer = bucket.layers.first;
  }
  return gathers;
}

/// Makes a chunk of a stage. Every stage has its first chunk before any stage has its second.
/// @param place  (stage, chunk)
PipelineChunk make_chunk(const Setting& setting, const PipelineOptions& options, std::pair<int, int> place,
                         const Stages& starts, GroupPlan& groups) {
  const auto [stage, number] = place;
  const int run = number * options.stages + stage, runs = options.stages * options.chunks;
  const LayerRange layers{starts[static_cast<std::size_t>(run)], starts[static_cast<std::size_t>(run) + 1]};
  add_exchanges(layers, groups);
  const std::vector<Bucket> buckets = add_sums(layers, false, groups.replicas, groups);
  for (const Bucket& bucket : buckets) {
    if (bucket.sum.exists()) groups.plan.collectives[bucket.sum.index()].layer = bucket.layers.first;
  }
  const bool overlaps = options.group.overlap;
  PipelineChunk chunk;
  if (options.zero > 0) chunk.gathers = partition_sums(buckets, groups);
  chunk.segments = segments_of(layers);
  chunk.passes = make_passes(groups.calls, layers,
                             sums_by_layer(overlaps ? buckets : std::vector<Bucket>{}, groups.calls.size()),
                             options.group.halo_overlap);
  for (const Bucket& bucket : buckets) {
    if (!overlaps && bucket.sum.exists()) chunk.sums.push_back(bucket.sum);
  }
  if (run > 0) {
    chunk.previous = RoleId((run - 1) % options.stages);
    chunk.chunk_of_previous = (run - 1) / options.stages;
    chunk.from_previous = boundary_bytes(setting, groups, layers.first);
  }
  if (run + 1 < runs) {
    chunk.next = RoleId((run + 1) % options.stages);
    chunk.chunk_of_next = (run + 1) / options.stages;
    chunk.to_next = boundary_bytes(setting, groups, layers.last);
  }
  return chunk;
}

}  // namespace

PipelineStage make_stage(const Setting& setting, const PipelineOptions& options, int number,
                         const Stages& starts, GroupPlan& groups) {
  PipelineStage stage;
  stage.steps = setting.steps;
  stage.micro_batches = options.group.micro_batches;
  stage.prefetch = setting.prefetch;
  stage.step_overhead = options.group.training.step_overhead;
  stage.exchange_overhead = options.group.exchange_overhead;
  stage.recompute = options.group.recompute;
  stage.reads_gradients = options.group.training.mixed;
  stage.sum_every_micro_batch = options.zero == 2;
  stage.actions =
      pipeline_schedule(options.order, number, options.stages, options.group.micro_batches, options.chunks);
  for (int chunk = 0; chunk < options.chunks; ++chunk)
    stage.chunks.push_back(make_chunk(setting, options, {number, chunk}, starts, groups));
  return stage;
}

}  // namespace stepcast
