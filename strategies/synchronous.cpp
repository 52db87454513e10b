#include "strategies/synchronous.hpp"

#include <deque>
#include <vector>

namespace stepcast {
namespace {

/// Layers that a pass may run through before it must wait for synchronized statistics.
std::vector<LayerRange> statistics_segments(const Workload& workload, LayerRange layers) {
  std::vector<LayerRange> segments;
  int first = layers.first;
  for (int layer = layers.first; layer < layers.last; ++layer) {
    if (workload.statistics[static_cast<std::size_t>(layer)].value == 0) continue;
    segments.push_back({first, layer + 1});
    first = layer + 1;
  }
  if (first < layers.last) segments.push_back({first, layers.last});
  return segments;
}

Bytes statistics_of(const Workload& workload, LayerRange segment) {
  return workload.statistics[static_cast<std::size_t>(segment.last - 1)];
}

}  // namespace

Program synchronous(Worker& worker, const Synchronous& options) {
  const Workload& workload = worker.workload();
  const LayerRange all{0, workload.layers()};
  const std::vector<LayerRange> segments =
      options.synchronized_batch_norm ? statistics_segments(workload, all) : std::vector<LayerRange>{all};
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
        if (options.synchronized_batch_norm && statistics_of(workload, segment).value > 0) {
          co_await worker.all_reduce(statistics_of(workload, segment));
        }
      }
      for (const Bucket& bucket : workload.buckets) {  // last layer first
        if (options.recompute) co_await worker.forward(bucket.layers);
        if (options.synchronized_batch_norm) {
          const auto parts = statistics_segments(workload, bucket.layers);
          for (auto part = parts.rbegin(); part != parts.rend(); ++part) {
            co_await worker.backward(*part);
            if (statistics_of(workload, *part).value > 0)
              co_await worker.all_reduce(statistics_of(workload, *part));
          }
        } else {
          co_await worker.backward(bucket.layers);
        }
        if (micro_batch + 1 < options.micro_batches || bucket.gradient.value == 0) continue;
        if (options.host_synchronization.value > 0) co_await worker.pause(options.host_synchronization);
        if (options.overlap) sums.push_back(worker.start_all_reduce(bucket.gradient));
      }
    }
    if (!options.overlap) {
      for (const Bucket& bucket : workload.buckets) {
        if (bucket.gradient.value > 0) sums.push_back(worker.start_all_reduce(bucket.gradient));
      }
    }
    for (Pending& sum : sums) co_await worker.finished(std::move(sum));
    co_await worker.optimizer_step();
    worker.end_step();
  }
}

}  // namespace stepcast
