#include "strategies/synchronous.hpp"

#include <deque>
#include <vector>

#include "strategies/buckets.hpp"

namespace stepcast {
namespace {

/// Layers that a pass may run through before it must wait for synchronized statistics.
std::vector<LayerRange> statistics_segments(const std::vector<int>& statistics, LayerRange layers) {
  std::vector<LayerRange> segments;
  int first = layers.first;
  for (int layer = layers.first; layer < layers.last; ++layer) {
    if (statistics[static_cast<std::size_t>(layer)] < 0) continue;
    segments.push_back({first, layer + 1});
    first = layer + 1;
  }
  if (first < layers.last) segments.push_back({first, layers.last});
  return segments;
}

/// Collective after a segment; -1: none.
int statistics_after(const std::vector<int>& statistics, LayerRange segment) {
  return statistics[static_cast<std::size_t>(segment.last - 1)];
}

/// Of all buckets at once.
std::vector<Pending> start_sums(Worker& worker) {
  std::vector<Pending> sums;
  for (const Bucket& bucket : worker.workload().buckets) {
    if (bucket.sum >= 0) sums.push_back(worker.start_collective(bucket.sum));
  }
  return sums;
}

}  // namespace

Program synchronous(Worker& worker, const Synchronous& options) {
  const Workload& workload = worker.workload();
  const LayerRange all{0, workload.layers()};
  const std::vector<LayerRange> segments = options.synchronized_batch_norm
                                               ? statistics_segments(options.statistics, all)
                                               : std::vector<LayerRange>{all};
  std::deque<Pending> loads;
  for (int ahead = 0; ahead < options.prefetch; ++ahead) loads.push_back(worker.start_load(workload.input));

  for (int step = 0; step < options.steps; ++step) {
    if (options.step_overhead.value > 0) co_await worker.pause(options.step_overhead);
    std::vector<Pending> sums;
    for (int micro_batch = 0; micro_batch < options.micro_batches; ++micro_batch) {
      loads.push_back(worker.start_load(workload.input));
      co_await worker.finished(std::move(loads.front()));
      loads.pop_front();

      for (const LayerRange& segment : segments) {
        co_await worker.forward(segment);
        if (options.synchronized_batch_norm && statistics_after(options.statistics, segment) >= 0) {
          co_await worker.collective(statistics_after(options.statistics, segment));
        }
      }
      for (std::size_t i = 0; i < workload.buckets.size(); ++i) {  // last layer first
        const Bucket& bucket = workload.buckets[i];
        if (options.recompute) co_await worker.forward(bucket.layers);
        if (options.synchronized_batch_norm) {
          const auto parts = statistics_segments(options.statistics, bucket.layers);
          for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
            co_await worker.backward(*part);
            const int sum = statistics_after(options.statistics, *part);
            if (sum >= 0) co_await worker.collective(sum);
          }
        } else {
          co_await worker.backward(bucket.layers);
        }
        const bool last = micro_batch + 1 == options.micro_batches;
        if (options.micro_batches > 1)
          worker.calculate([&](Arrays& arrays) { accumulate_micro_batch(arrays, bucket, last); });
        if (!last || bucket.sum < 0) continue;
        if (!options.quantize.empty()) co_await worker.local(options.quantize[i]);
        if (options.host_synchronization.value > 0) co_await worker.pause(options.host_synchronization);
        if (options.overlap) sums.push_back(worker.start_collective(bucket.sum));
      }
    }
    if (!options.overlap) sums = start_sums(worker);
    for (Pending& sum : sums) co_await worker.finished(std::move(sum));
    if (!options.quantize.empty()) co_await worker.local(options.restore);
    co_await worker.optimizer_step();
    worker.end_step();
  }
}

}  // namespace stepcast
