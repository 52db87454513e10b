#include "strategies/block.hpp"

#include <cmath>
#include <deque>

#include "strategies/block_balance.hpp"

namespace stepcast {
namespace {

enum Tag { kPace = 1, kShare };

Message number(int tag, double value) {
  Message message;
  message.tag = tag;
  message.buffer.size = {8};
  message.value = value;
  return message;
}

/// The master tells every other worker its mini-batches of the next block; returns its own.
/// @param paces  seconds that each worker needs for a mini-batch
int deal_out(Worker& master, const BlockTraining& options, const std::vector<double>& paces) {
  const std::vector<int> shares = balanced_shares(paces, options.replicas * options.mini_batches);
  for (int i = 1; i < options.replicas; ++i)
    master.start_send(i, number(kShare, shares[static_cast<std::size_t>(i)]));
  return shares[0];
}

/// Loads of the first blocks, as many as are loaded ahead.
std::deque<Pending> first_splits(Worker& worker, const BlockTraining& options) {
  std::deque<Pending> splits;
  for (int ahead = 0; ahead < options.prefetch; ++ahead) splits.push_back(worker.start_load(options.split));
  return splits;
}

}  // namespace

int validations_after(const BlockTraining& options, int block) {
  if (options.validation_every == 0) return 1;
  const double before = std::floor(block * options.block_samples / options.validation_every);
  return static_cast<int>(std::floor((block + 1) * options.block_samples / options.validation_every) -
                          before);
}

Program block_training(Worker& worker, const BlockTraining& options, int role) {
  const Workload& workload = worker.workload();
  const bool several = options.replicas > 1;
  std::deque<Pending> splits = first_splits(worker, options);  // the next load while one is processed
  int mini_batches = options.mini_batches;

  for (int block = 0; block < options.blocks; ++block) {
    splits.push_back(worker.start_load(options.split));
    co_await worker.finished(std::move(splits.front()));
    splits.pop_front();
    worker.mark("load");

    for (int i = 0; i < mini_batches; ++i) {
      if (options.step_overhead.value > 0) co_await worker.pause(options.step_overhead);
      co_await worker.forward();
      std::vector<Pending> sums;
      for (const Bucket& bucket : workload.buckets) {
        co_await worker.backward(bucket.layers);
        if (bucket.sum >= 0) sums.push_back(worker.start_collective(bucket.sum));
      }
      for (Pending& sum : sums) co_await worker.finished(std::move(sum));
      co_await worker.optimizer_step();
    }
    if (several && options.imbalance > 0) co_await worker.pause(options.imbalance * options.split_seconds);

    const Message pace = number(kPace, worker.mark("optimize") / mini_batches);
    std::vector<double> paces{pace.value};  // seconds a mini-batch, of every worker
    paces.resize(static_cast<std::size_t>(options.replicas));
    for (int i = 1; options.balanced && role == 0 && i < options.replicas; ++i) {
      const Message one = co_await worker.receive(kPace);
      paces[static_cast<std::size_t>(one.from)] = one.value;
    }
    if (options.balanced && role == 0) mini_batches = deal_out(worker, options, paces);
    if (options.balanced && role > 0) {
      co_await worker.send(0, pace);
      const Message share = co_await worker.receive(kShare, 0);
      mini_batches = static_cast<int>(share.value);
    }

    if (several) {
      co_await worker.pause(options.aggregation_overhead);
      if (options.quantize.duration.value > 0) co_await worker.local(options.quantize);
      for (const int part : options.gather) co_await worker.collective(part);
      if (options.restore.duration.value > 0) co_await worker.local(options.restore);
      co_await worker.local(options.filter_work);
      for (const int part : options.spread) co_await worker.collective(part);
    }
    worker.mark("aggregate");
    for (int due = validations_after(options, block); due > 0; --due)
      co_await worker.local(options.validation_work);
    worker.mark("validate");
    worker.end_step();
  }
}

}  // namespace stepcast
