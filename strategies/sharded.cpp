#include "strategies/sharded.hpp"

#include <deque>

#include "strategies/run_pass.hpp"

namespace stepcast {

Program sharded(Worker& worker, const Sharded& options) {
  const Bytes input = worker.workload().input;
  std::deque<Pending> loads;
  for (int ahead = 0; ahead < options.prefetch; ++ahead) loads.push_back(worker.start_load(input));

  for (int step = 0; step < options.steps; ++step) {
    if (options.step_overhead.value > 0) co_await worker.pause(options.step_overhead);
    std::vector<Pending> sums;
    for (int micro_batch = 0; micro_batch < options.micro_batches; ++micro_batch) {
      loads.push_back(worker.start_load(input));
      co_await worker.finished(std::move(loads.front()));
      loads.pop_front();

      const bool last = micro_batch + 1 == options.micro_batches;
      const PassRun forward{Work::forward, options.exchange_overhead, false};
      const PassRun backward{Work::backward, options.exchange_overhead, last};
      co_await run_pass(worker, options.passes, forward, sums);
      if (options.recomputed.empty()) co_await run_pass(worker, options.passes, backward, sums);
      for (auto stretch = options.recomputed.rbegin(); stretch != options.recomputed.rend(); ++stretch) {
        co_await run_pass(worker, *stretch, forward, sums);
        co_await run_pass(worker, *stretch, backward, sums);
      }
    }
    for (const int sum : options.sums) sums.push_back(worker.start_collective(sum));
    for (Pending& sum : sums) co_await worker.finished(std::move(sum));
    co_await worker.optimizer_step();
    worker.mark("compute");
    worker.record("step", 1);
    worker.end_step();
  }
}

}  // namespace stepcast
