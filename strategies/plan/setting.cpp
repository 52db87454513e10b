#include "strategies/plan/setting.hpp"

#include <fmt/format.h>

namespace stepcast {

std::int64_t samples_per_replica(const Setting& setting, int replicas, int micro_batches) {
  std::int64_t samples = setting.trace_batch * micro_batches;
  if (setting.batch_per_worker) samples = setting.batch_per_worker->integer(1, 1'000'000'000);
  if (setting.global_batch) {
    samples = setting.global_batch->integer(1, 1'000'000'000);
    if (samples % replicas != 0) {
      setting.global_batch->refuse(
          fmt::format("{} samples cannot be shared evenly by {} workers", samples, replicas));
    }
    samples /= replicas;
  }
  if (samples % micro_batches != 0) {
    const auto& asked = setting.batch_per_worker ? setting.batch_per_worker : setting.global_batch;
    asked->refuse(fmt::format("a batch of {} for each worker is not a multiple of {} micro-batches", samples,
                              micro_batches));
  }
  return samples;
}

}  // namespace stepcast
