#include "strategies/parameter_server/server_client.hpp"

#include <algorithm>

#include "strategies/arithmetic/model_updates.hpp"
#include "strategies/compression/gradient_compression.hpp"

namespace stepcast {
namespace {

constexpr int kBeginParts = 2;  // messages: an update is ready, and its time step

const Shard& shard_of(const Servers& servers, RoleId role) {
  return *std::find_if(servers.shards.begin(), servers.shards.end(),
                       [&](const Shard& shard) { return shard.role == role; });
}

Message request(const Shard& shard, Array what, bool answered, const ClientState& state) {
  Message message;
  message.tag = kRequest;
  message.answered = answered;
  message.buffer.array = what;
  if (what != Array::none) {
    message.buffer.elements = shard.elements;
    message.buffer.size = what == Array::parameters ? shard.size : shard.update;
    message.parts = shard.parts;
    if (what != Array::parameters) message.buffer.codec = shard.codec;
  }
  for (const ClientState::Read& read : state.versions) {
    if (read.role == shard.role) message.value = read.version;
  }
  return message;
}

Message beginning(const Message& request) {
  Message message;
  message.tag = kBegin;
  message.answered = request.answered;
  message.buffer.array = request.buffer.array;
  message.parts = request.buffer.array == Array::none ? 1 : kBeginParts;
  message.value = request.value;
  return message;
}

}  // namespace

void ClientState::has_read(const Message& weights) {
  const auto known =
      std::ranges::find_if(versions, [&](const Read& read) { return read.role == weights.from; });
  if (known == versions.end()) return versions.push_back({weights.from, weights.value});
  known->version = weights.value;
}

double ClientState::version() const {
  double oldest = versions.empty() ? 0 : versions.front().version;
  for (const Read& read : versions) oldest = std::min(oldest, read.version);
  return oldest;
}

LocalWork add_array(Array values, Array sum, bool first, Seconds array) {
  return {"sum of gradients", (first ? 2 : 3) * array, [values, sum, first](Arrays& arrays) {
            if (first) {
              std::ranges::copy(arrays.of(values), arrays.of(sum).begin());
            } else {
              accumulate(arrays.of(values), arrays.of(sum));
            }
          }};
}

void compress_update(Arrays& arrays, const Servers& servers, Array array) {
  for (const Shard& shard : servers.shards)
    arrays.compressed(shard.codec, shard.elements).quantize(arrays.of(array, shard.elements));
}

namespace {

/// parameters = center, for the elements that these servers hold.
LocalWork take_center(const Servers& servers, Seconds array) {
  return {"copy of parameters", 2 * array, [&servers](Arrays& arrays) {
            for (const Shard& shard : servers.shards)
              std::ranges::copy(arrays.of(Array::center, shard.elements),
                                arrays.of(Array::parameters, shard.elements).begin());
          }};
}

/// Sends a request to every shard. A serial shard is asked first.
SubProgram send_requests(Worker& worker, const Servers& servers, Array what, bool answered,
                         ClientState& state) {
  state.pushes.clear();
  for (const Shard& shard : servers.shards) {
    const Message whole = request(shard, what, answered, state);
    if (servers.serial) {
      worker.start_send(shard.role, beginning(whole));
    } else {
      state.pushes.push_back(worker.start_send(shard.role, whole));
    }
  }
  if (!servers.serial || what == Array::none) co_return;
  for (std::size_t i = 0; i < servers.shards.size(); ++i) {
    const Message grant = co_await worker.receive(kGrant);
    const Message whole = request(shard_of(servers, grant.from), what, answered, state);
    state.pushes.push_back(worker.start_send(grant.from, whole));
  }
}

}  // namespace

SubProgram exchange(Worker& worker, const Servers& servers, ClientExchange what, ClientState& state) {
  co_await send_requests(worker, servers, what.update, true, state);
  state.pushes.clear();  // the answers imply that the requests have arrived
  for (std::size_t i = 0; i < servers.shards.size(); ++i) {
    const Message weights = co_await worker.receive(kWeights, kAnyone, what.into);
    state.has_read(weights);
  }
}

SubProgram push(Worker& worker, const Servers& servers, Array update, ClientState& state) {
  co_await send_requests(worker, servers, update, false, state);
  co_await finish_push(worker, state);
}

SubProgram start_fetch(Worker& worker, const Servers& servers, Seconds array, ClientState& state) {
  for (Pending& read : state.reads) {
    const Message weights = co_await worker.finished(std::move(read));
    state.has_read(weights);
  }
  if (!state.reads.empty()) co_await worker.local(take_center(servers, array));
  state.reads.clear();
  for (const Shard& shard : servers.shards) {
    const Message read = request(shard, Array::none, true, state);
    worker.start_send(shard.role, read);
    state.reads.push_back(worker.start_receive(kWeights, kAnyone, Array::center));
  }
}

SubProgram finish_push(Worker& worker, ClientState& state) {
  for (Pending& sent : state.pushes) co_await worker.finished(std::move(sent));
  state.pushes.clear();
}

void start_push(Worker& worker, const Servers& servers, Array update, ClientState& state) {
  for (const Shard& shard : servers.shards)
    state.pushes.push_back(worker.start_send(shard.role, request(shard, update, false, state)));
}

SubProgram start_mini_batch(Worker& worker, const MiniBatch& options, std::deque<Pending>& loads) {
  const Bytes input = worker.workload().input;
  while (std::ssize(loads) < options.prefetch) loads.push_back(worker.start_load(input));
  if (options.overhead.value > 0) co_await worker.pause(options.overhead);
  loads.push_back(worker.start_load(input));
  co_await worker.finished(std::move(loads.front()));
  loads.pop_front();
}

namespace {

/// Forward and backward pass of a rank that has a part of the network.
SubProgram train_part(Worker& worker, const MiniBatch& options) {
  const PassRun forward{Work::forward, options.exchange_overhead, false};
  const PassRun backward{Work::backward, options.exchange_overhead, true};
  std::vector<Pending> sums;
  co_await run_pass(worker, *options.passes, forward, sums);
  co_await run_pass(worker, *options.passes, backward, sums);
  for (Pending& sum : sums) co_await worker.finished(std::move(sum));
}

}  // namespace

SubProgram train_mini_batch(Worker& worker, const MiniBatch& options, std::deque<Pending>& loads) {
  co_await start_mini_batch(worker, options, loads);
  if (options.passes) {
    co_await train_part(worker, options);
  } else {
    co_await worker.forward();
    co_await worker.backward();
  }
  if (options.sum.exists()) co_await worker.collective(options.sum);
}

SubProgram share_weights(Worker& worker, const MiniBatch& options) {
  if (options.share.exists()) co_await worker.collective(options.share);
}

}  // namespace stepcast
