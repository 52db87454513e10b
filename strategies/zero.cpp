#include "strategies/zero.hpp"

#include <deque>
#include <utility>

#include "strategies/buckets.hpp"
#include "strategies/part.hpp"

namespace stepcast {
namespace {

/// Starts a collective, if there is one.
void start(Worker& worker, int collective, std::vector<Pending>& pending) {
  if (collective >= 0) pending.push_back(worker.start_collective(collective));
}

/// The sum over all workers of a bucket's gradients of one micro-batch, of which this worker has its share:
/// waited for, and added to those of earlier micro-batches.
Part take_sums(Worker& worker, const Zero& options, const Bucket& bucket, Pending& scattered, bool last) {
  if (scattered == nullptr) co_return;
  co_await worker.finished(std::exchange(scattered, nullptr));
  if (options.stage > 1 && options.micro_batches > 1)
    worker.calculate([&](Arrays& arrays) { accumulate_micro_batch(arrays, bucket, last); });
}

}  // namespace

Program zero(Worker& worker, const Zero& options) {
  const Workload& workload = worker.workload();
  const std::size_t buckets = workload.buckets.size();
  const bool gathers_layers = options.stage == 3;
  std::deque<Pending> loads;
  for (int ahead = 0; ahead < options.prefetch; ++ahead) loads.push_back(worker.start_load(workload.input));

  for (int step = 0; step < options.steps; ++step) {
    if (options.step_overhead.value > 0) co_await worker.pause(options.step_overhead);
    std::vector<Pending> scattered(buckets);
    for (int micro_batch = 0; micro_batch < options.micro_batches; ++micro_batch) {
      loads.push_back(worker.start_load(workload.input));
      co_await worker.finished(std::move(loads.front()));
      loads.pop_front();

      std::vector<Pending> gathered;  // of the next bucket
      if (gathers_layers) start(worker, options.gathers[buckets - 1], gathered);
      for (std::size_t i = buckets; i-- > 0;) {  // first layer first
        for (Pending& parameters : gathered) co_await worker.finished(std::move(parameters));
        gathered.clear();
        if (gathers_layers && i > 0) start(worker, options.gathers[i - 1], gathered);
        co_await worker.forward(workload.buckets[i].layers);
      }
      const bool last = micro_batch + 1 == options.micro_batches;
      if (gathers_layers) start(worker, options.gathers[0], gathered);
      for (std::size_t i = 0; i < buckets; ++i) {  // last layer first
        for (Pending& parameters : gathered) co_await worker.finished(std::move(parameters));
        gathered.clear();
        if (gathers_layers && i + 1 < buckets) start(worker, options.gathers[i + 1], gathered);
        const Bucket& bucket = workload.buckets[i];
        co_await take_sums(worker, options, bucket, scattered[i], false);  // before they are written over
        co_await worker.backward(bucket.layers);
        const int scatter = options.scatters[i];
        const bool travels = scatter >= 0 && (last || options.stage > 1);
        if (options.micro_batches > 1 && (options.stage == 1 || scatter < 0))
          worker.calculate([&](Arrays& arrays) { accumulate_micro_batch(arrays, bucket, last); });
        if (options.overlap && travels) scattered[i] = worker.start_collective(scatter);
      }
      for (std::size_t i = 0; !options.overlap && (last || options.stage > 1) && i < buckets; ++i)
        if (options.scatters[i] >= 0) scattered[i] = worker.start_collective(options.scatters[i]);
    }
    for (std::size_t i = 0; i < buckets; ++i)
      co_await take_sums(worker, options, workload.buckets[i], scattered[i], true);
    co_await worker.optimizer_step();
    std::vector<Pending> updated;
    for (std::size_t i = 0; !gathers_layers && i < buckets; ++i) start(worker, options.gathers[i], updated);
    for (Pending& parameters : updated) co_await worker.finished(std::move(parameters));
    worker.end_step();
  }
}

}  // namespace stepcast
