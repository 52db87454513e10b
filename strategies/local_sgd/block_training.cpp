#include "strategies/local_sgd/block_training.hpp"

#include <algorithm>
#include <cmath>
#include <deque>
#include <numeric>
#include <stdexcept>

#include "strategies/arithmetic/model_updates.hpp"
#include "strategies/program/program.hpp"

namespace stepcast {

std::vector<int> balanced_shares(const std::vector<double>& seconds, int total) {
  const auto workers = seconds.size();
  if (workers == 0 || total < static_cast<int>(workers)) {
    throw std::invalid_argument("balanced_shares: fewer mini-batches than workers");
  }
  double speed = 0;
  for (const double one : seconds) {
    if (!(one > 0)) throw std::invalid_argument("balanced_shares: seconds must be > 0");
    speed += 1 / one;
  }
  const double free = total - static_cast<double>(workers);  // without the first of each worker
  std::vector<int> shares(workers, 1);
  std::vector<double> rest(workers);
  for (std::size_t i = 0; i < workers; ++i) {
    // The share in proportion to speed, without the first mini-batch of each worker.
    const double share = std::max(0.0, total / seconds[i] / speed - 1);
    rest[i] = share;
  }
  const double sum = std::accumulate(rest.begin(), rest.end(), 0.0);
  int left = static_cast<int>(free);
  for (std::size_t i = 0; i < workers; ++i) {
    const double share = sum > 0 ? rest[i] / sum * free : 0;
    shares[i] += static_cast<int>(share);
    left -= static_cast<int>(share);
    rest[i] = share - std::floor(share);
  }
  std::vector<std::size_t> order(workers);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return rest[a] > rest[b]; });
  for (std::size_t i = 0; left > 0; i = (i + 1) % workers, --left) ++shares[order[i]];
  return shares;
}

namespace {

enum Tag { kPace = 1, kShare };

Message message_of(MessageTag tag, double value) {
  Message message;
  message.tag = tag;
  message.buffer.size = {8};
  message.value = value;
  return message;
}

/// Starts the loads of the first blocks.
std::deque<Pending> first_splits(Worker& worker, const BlockRun& run) {
  std::deque<Pending> splits;
  for (int ahead = 0; ahead < run.options.prefetch; ++ahead) splits.push_back(worker.start_load(run.split));
  return splits;
}

/// Step 1. The workers of a replica sum their gradients in every mini-batch.
SubProgram train_split(Worker& worker, const BlockRun& run, int mini_batches) {
  const BlockTraining& options = run.options;
  for (int i = 0; i < mini_batches; ++i) {
    if (options.step_overhead.value > 0) co_await worker.pause(options.step_overhead);
    co_await worker.forward();
    std::vector<Pending> sums;
    for (const Bucket& bucket : worker.workload().buckets) {
      co_await worker.backward(bucket.layers);
      if (bucket.sum.exists()) sums.push_back(worker.start_collective(bucket.sum));
    }
    for (Pending& sum : sums) co_await worker.finished(std::move(sum));
    co_await worker.optimizer_step();
  }
  if (run.replicas > 1 && options.imbalance > 0) co_await worker.pause(options.imbalance * run.split_seconds);
}

/// The master collects the time that every worker needs for a mini-batch, and sends each worker its number of
/// mini-batches of the next block.
/// @param pace          seconds a mini-batch of this worker
/// @param mini_batches  out: mini-batches of this worker in the next block
SubProgram balance_load(Worker& worker, const BlockRun& run, RoleId role, double pace, int& mini_batches) {
  const RoleId master{0};
  if (role != master) {
    const Message own = message_of(kPace, pace);
    co_await worker.send(master, own);
    const Message share = co_await worker.receive(kShare, master);
    mini_batches = static_cast<int>(share.value);
    co_return;
  }
  std::vector<double> paces(run.replicas);
  paces[0] = pace;
  for (int i = 1; i < run.replicas; ++i) {
    const Message one = co_await worker.receive(kPace);
    paces[one.from.index()] = one.value;
  }
  const std::vector<int> shares = balanced_shares(paces, run.replicas * run.options.mini_batches);
  for (int i = 1; i < run.replicas; ++i) worker.start_send(RoleId(i), message_of(kShare, shares[i]));
  mini_batches = shares[0];
}

/// Steps 2 to 4.
SubProgram aggregate(Worker& worker, const BlockRun& run, int block) {
  co_await worker.pause(run.options.aggregation_overhead);
  if (run.quantize.duration.value > 0) co_await worker.local(run.quantize);
  for (const CollectiveId collective : run.sum_models) co_await worker.collective(collective);
  if (run.restore.duration.value > 0) co_await worker.local(run.restore);
  co_await worker.local(block < run.options.blocks_without_momentum ? run.first_filter : run.filter);
  for (const CollectiveId collective : run.send_model) co_await worker.collective(collective);
}

}  // namespace

Program block_training(Worker& worker, const BlockRun& run, RoleId role) {
  std::deque<Pending> splits = first_splits(worker, run);  // the next split loads while one is processed
  int mini_batches = run.options.mini_batches;

  for (int block = 0; block < run.options.blocks; ++block) {
    splits.push_back(worker.start_load(run.split));
    co_await worker.finished(std::move(splits.front()));
    splits.pop_front();
    worker.mark("load");

    co_await train_split(worker, run, mini_batches);  // 1.
    const double pace = worker.mark("optimize") / mini_batches;
    if (run.options.balanced) co_await balance_load(worker, run, role, pace, mini_batches);
    if (run.replicas > 1) co_await aggregate(worker, run, block);  // 2. to 4.
    worker.mark("aggregate");
    for (int due = validations_after(run, block); due > 0; --due) co_await worker.local(run.validation);
    worker.mark("validate");
    worker.end_step();
  }
}

Arithmetic average_arithmetic(int replicas) {
  return [replicas](Arrays& arrays) { divide(replicas, arrays.of(Array::parameters)); };
}

Arithmetic filter_arithmetic(const BlockFilter& filter, int replicas) {
  return [filter, replicas](Arrays& arrays) {
    const std::span<float> parameters = arrays.of(Array::parameters), center = arrays.of(Array::center),
                           model = arrays.of(Array::model), change = arrays.of(Array::change);
    constexpr std::size_t kPart = 4096;  // elements that stay in the cache between the three loops
    for (std::size_t first = 0; first < parameters.size(); first += kPart) {
      const auto part = [&](std::span<float> all) {
        return all.subspan(first, std::min(kPart, all.size() - first));
      };
      divide(replicas, part(parameters));
      filter_block_update(filter, part(parameters), {part(model), part(change)}, part(center));
      std::ranges::copy(part(center), part(parameters).begin());
    }
  };
}

int validations_after(const BlockRun& run, int block) {
  if (run.validation_every == 0) return 1;
  const double before = std::floor(block * run.block_samples / run.validation_every);
  return static_cast<int>(std::floor((block + 1) * run.block_samples / run.validation_every) - before);
}

}  // namespace stepcast
