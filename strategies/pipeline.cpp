#include "strategies/pipeline.hpp"

#include <deque>

#include "strategies/run_pass.hpp"

namespace stepcast {
namespace {

// Tags of messages to a chunk: activations from below, error signals from above.
int activations_tag(int chunk) {
  return 1 + 2 * chunk;
}
int errors_tag(int chunk) {
  return 2 + 2 * chunk;
}

/// Waits for what a turn works on: input, activations or error signals.
Part arrival(Worker& worker, const PipelineChunk& chunk, const Turn& turn, std::deque<Pending>& loads) {
  const bool forward = turn.pass == Work::forward;
  if (forward && chunk.previous < 0) {
    loads.push_back(worker.start_load(worker.workload().input));
    co_await worker.finished(std::move(loads.front()));
    loads.pop_front();
  } else if (forward) {
    co_await worker.receive(activations_tag(turn.chunk), chunk.previous);
  } else if (chunk.next >= 0) {
    co_await worker.receive(errors_tag(turn.chunk), chunk.next);
  }
}

/// Sends on what a turn has made.
void send_on(Worker& worker, const PipelineChunk& chunk, Work pass, std::vector<Pending>& sent) {
  const bool forward = pass == Work::forward;
  const int role = forward ? chunk.next : chunk.previous;
  if (role < 0) return;
  Message message;
  message.tag = forward ? activations_tag(chunk.chunk_of_next) : errors_tag(chunk.chunk_of_previous);
  message.buffer = {
      forward ? Array::activations : Array::errors, {}, forward ? chunk.to_next : chunk.from_previous};
  sent.push_back(worker.start_send(role, message));
}

void start(Worker& worker, const std::vector<int>& collectives, std::vector<Pending>& pending) {
  for (const int one : collectives) pending.push_back(worker.start_collective(one));
}

}  // namespace

int chunk_of_tag(int tag) {
  return (tag - 1) / 2;
}

Program pipeline_stage(Worker& worker, const PipelineStage& options) {
  std::deque<Pending> loads;
  const bool first = options.chunks.front().previous < 0;
  for (int ahead = 0; first && ahead < options.prefetch; ++ahead)
    loads.push_back(worker.start_load(worker.workload().input));

  for (int step = 0; step < options.steps; ++step) {
    if (options.step_overhead.value > 0) co_await worker.pause(options.step_overhead);
    std::vector<Pending> sent, sums, gathered;
    for (const Turn& turn : options.turns) {
      const PipelineChunk& chunk = options.chunks[static_cast<std::size_t>(turn.chunk)];
      co_await arrival(worker, chunk, turn, loads);
      const bool last = turn.micro_batch + 1 == options.micro_batches;
      if (turn.pass == Work::backward && options.recompute) {
        const PassRun again{Work::forward, options.exchange_overhead, false};
        co_await run_pass(worker, chunk.passes, again, sums);
      }
      const PassRun run{turn.pass, options.exchange_overhead, last || options.sum_every_micro_batch};
      co_await run_pass(worker, chunk.passes, run, sums);
      send_on(worker, chunk, turn.pass, sent);
    }
    for (const PipelineChunk& chunk : options.chunks) start(worker, chunk.sums, sums);
    for (Pending& message : sent) co_await worker.finished(std::move(message));
    for (Pending& sum : sums) co_await worker.finished(std::move(sum));
    for (const PipelineChunk& chunk : options.chunks)
      co_await worker.finished(worker.start_compute(Work::update, chunk.pieces));
    for (const PipelineChunk& chunk : options.chunks) start(worker, chunk.gathers, gathered);
    for (Pending& parameters : gathered) co_await worker.finished(std::move(parameters));
    worker.end_step();
  }
}

}  // namespace stepcast
