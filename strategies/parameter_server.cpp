#include "strategies/parameter_server.hpp"

#include <algorithm>

#include "strategies/arithmetic/downpour.hpp"

namespace stepcast {
namespace {

void add_to_update(Arrays& arrays) {
  accumulate(arrays.of(Array::gradients), arrays.of(Array::update));
}

void clear_update(Arrays& arrays) {
  std::ranges::fill(arrays.of(Array::update), 0.0F);
}

/// A push without an answer carries gradients.
void push_update(Arrays& arrays) {
  std::ranges::copy(arrays.of(Array::update), arrays.of(Array::gradients).begin());
  clear_update(arrays);
}

Part read_before(Worker& worker, const ParameterServer& options, int step, ClientState& state) {
  if (options.joint() || step % options.n_fetch != 0) co_return;
  if (options.overlap) {
    co_await start_fetch(worker, options.servers, state);
  } else {
    co_await fetch(worker, options.servers, state);
    worker.calculate([&options](Arrays& arrays) { take_center(arrays, options.servers); });
  }
}

Part send_after(Worker& worker, const ParameterServer& options, int step, ClientState& state) {
  const bool gathers = options.joint() || options.n_push > 1;
  if (gathers) worker.calculate(add_to_update);
  if ((step + 1) % options.n_push != 0) co_return;
  if (gathers && !options.joint()) worker.calculate(push_update);
  if (options.compressed) co_await worker.local(options.quantize);
  if (options.joint()) {
    co_await exchange(worker, options.servers, Array::update, state);
    worker.calculate([&options](Arrays& arrays) { take_center(arrays, options.servers); });
    worker.calculate(clear_update);
    co_return;
  }
  if (options.overlap) {
    co_await start_push(worker, options.servers, state);
  } else {
    co_await push(worker, options.servers, state);
  }
}

}  // namespace

Program parameter_server(Worker& worker, const ParameterServer& options) {
  ClientState state;
  std::deque<Pending> loads;
  for (int step = 0; step < options.steps;) {
    co_await read_before(worker, options, step, state);
    co_await train_mini_batch(worker, options.batch, loads);
    if (options.local_update) co_await worker.optimizer_step();
    co_await send_after(worker, options, step, state);
    co_await share_weights(worker, options.batch);
    const bool counts_versions = options.rounds && !options.servers.shards.empty();
    const int done = counts_versions ? static_cast<int>(state.version()) : step + 1;
    for (; step < done; ++step) worker.end_step();
  }
}

}  // namespace stepcast
