#include "strategies/model_parallel/pipeline_stage.hpp"

#include <algorithm>
#include <deque>
#include <utility>
#include <vector>

#include "strategies/model_parallel/layer_segments.hpp"

namespace stepcast {
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

/// Gradient sums of a step that run. g++ 12 warns of a coroutine with a local of an unnamed namespace.
struct GradientSums {
  std::vector<Pending> started;
  std::vector<std::pair<Pending, CollectiveId>> scattered;  ///< scatters, and the all-reduces that follow
};

namespace {

/// Starts the all-reduces that follow the last scatters, once these are done.
SubProgram sum_scattered(Worker& worker, GradientSums& sums) {
  for (auto& [scatter, all_reduce] : sums.scattered) {
    co_await worker.finished(std::move(scatter));
    sums.started.push_back(worker.start_collective(all_reduce));
  }
  sums.scattered.clear();
}

/// Step 2.
SubProgram run_units(Worker& worker, const PipelineStage& stage, const PipelineAction& action,
                     GradientSums& sums) {
  const std::vector<ShardedUnit>& units = stage.chunks[action.chunk].units;
  const bool backward = action.pass == Work::backward;
  const bool gathers = !action.weights && (stage.reshard || (!backward && action.micro_batch == 0));
  const bool last = action.micro_batch + 1 == stage.micro_batches;
  const bool recomputes = backward && !action.weights && (stage.recompute_last || !last);
  const PassRun run{action.pass, stage.exchange_overhead, last || stage.sum_every_micro_batch,
                    stage.synchronizes_units, stage.waits_for_scatters};
  const PassRun again{Work::forward, stage.exchange_overhead, false, stage.synchronizes_units};
  const auto unit = [&](std::size_t i) -> const ShardedUnit& {
    return units[backward ? units.size() - 1 - i : i];
  };
  std::vector<Pending> gathered;
  if (gathers) start(worker, unit(0).gathers, gathered);
  for (std::size_t i = 0; i < units.size(); ++i) {
    for (Pending& parameters : gathered) co_await worker.finished(std::move(parameters));
    gathered.clear();
    if (gathers && i + 1 < units.size()) start(worker, unit(i + 1).gathers, gathered);
    if (stage.synchronizes_units) worker.synchronize();
    if (recomputes) co_await run_pass(worker, unit(i).recomputed, again, sums.started);
    const bool sums_nodes = backward && run.sums && !unit(i).all_reduces.empty();
    std::vector<Pending> scatters;
    const PassSegments& passes = action.weights ? unit(i).weights
                                 : action.whole ? unit(i).whole
                                                : unit(i).passes;
    co_await run_pass(worker, passes, run, sums_nodes ? scatters : sums.started);
    if (sums_nodes) co_await sum_scattered(worker, sums);
    for (std::size_t k = 0; k < scatters.size(); ++k)
      sums.scattered.emplace_back(std::move(scatters[k]), unit(i).all_reduces[k]);
    for (std::size_t k = 0; sums_nodes && run.waits && k < unit(i).all_reduces.size(); ++k)
      co_await worker.finished(worker.start_collective(unit(i).all_reduces[k]));
  }
}

/// Step 2 of two actions that run together.
SubProgram run_both(Worker& worker, const PipelineStage& stage, const PipelineAction& forward,
                    const PipelineAction& backward, GradientSums& sums) {
  const bool last = backward.micro_batch + 1 == stage.micro_batches;
  const PassRun run{Work::backward, stage.exchange_overhead, last || stage.sum_every_micro_batch};
  const ShardedUnit& unit = stage.chunks[backward.chunk].units.front();
  const PassRun again{Work::forward, stage.exchange_overhead, false};
  if (stage.recompute_last || !last) co_await run_pass(worker, unit.recomputed, again, sums.started);
  co_await run_together(worker, stage.chunks[forward.chunk].units.front().passes, unit.whole, run,
                        sums.started);
}

/// The chunks in the order of their layers, in which all stages start sums that they have in common.
std::vector<const PipelineChunk*> by_layer(const std::vector<PipelineChunk>& chunks) {
  std::vector<const PipelineChunk*> sorted;
  for (const PipelineChunk& chunk : chunks) sorted.push_back(&chunk);
  std::ranges::sort(sorted, {}, [](const PipelineChunk* chunk) { return chunk->segments.first; });
  return sorted;
}

}  // namespace

int chunk_of_tag(MessageTag tag) {
  return (tag.value - 1) / 2;
}

Program pipeline_stage(Worker& worker, const PipelineStage& options) {
  std::deque<Pending> loads;
  const std::vector<const PipelineChunk*> in_order = by_layer(options.chunks);
  const bool first = !options.chunks.front().previous.exists();
  for (int ahead = 0; first && ahead < options.prefetch; ++ahead)
    loads.push_back(worker.start_load(worker.workload().input));

  for (int step = 0; step < options.steps; ++step) {
    if (options.step_overhead.value > 0) co_await worker.pause(options.step_overhead);
    std::vector<Pending> sent, gathered;
    GradientSums sums;
    for (std::size_t i = 0, end = 0; i < options.actions.size(); i = end) {
      const PipelineAction &action = options.actions[i],
                           &last = options.actions[i + (action.together ? 1 : 0)];
      end = i + (action.together ? 2 : 1);
      const PipelineChunk& chunk = options.chunks[action.chunk];
      const bool exchanges = !action.weights && (chunk.previous.exists() || chunk.next.exists());
      for (std::size_t k = i; k < end && !action.weights; ++k)
        co_await receive_input(worker, options.chunks[options.actions[k].chunk], options.actions[k], loads);
      if (exchanges) worker.synchronize();  // 1. and 3.
      if (action.together)
        co_await run_both(worker, options, action, last, sums);
      else
        co_await run_units(worker, options, action, sums);  // 2.
      for (std::size_t k = i; k < end && !action.weights; ++k)
        send_output(worker, options.chunks[options.actions[k].chunk], options.actions[k].pass, sent);
    }
    for (const PipelineChunk* chunk : in_order) start(worker, chunk->sums, sums.started);  // 4.
    co_await sum_scattered(worker, sums);
    for (Pending& message : sent) co_await worker.finished(std::move(message));
    for (Pending& sum : sums.started) co_await worker.finished(std::move(sum));
    if (options.reads_gradients) worker.synchronize();
    if (options.host_update.value > 0) co_await worker.pause(options.host_update);  // 5.
    for (const PipelineChunk& chunk : options.chunks)
      if (options.host_update.value == 0)
        co_await worker.finished(worker.start_compute(Work::update, chunk.segments));
    for (const PipelineChunk* chunk : in_order) start(worker, chunk->gathers, gathered);  // 6.
    for (Pending& parameters : gathered) co_await worker.finished(std::move(parameters));
    worker.record("step", 1);
    worker.end_step();
  }
}

}  // namespace stepcast
