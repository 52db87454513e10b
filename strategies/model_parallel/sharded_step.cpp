#include "strategies/model_parallel/sharded_step.hpp"

#include <deque>

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
      co_await run_pass(worker, options.passes, forward, sums);  // 1. and 2.
      if (options.recomputed.empty()) co_await run_pass(worker, options.passes, backward, sums);
      for (auto part = options.recomputed.rbegin(); part != options.recomputed.rend(); ++part) {
        co_await run_pass(worker, *part, forward, sums);
        co_await run_pass(worker, *part, backward, sums);
      }
    }
    for (const int sum : options.sums) sums.push_back(worker.start_collective(sum));
    for (Pending& sum : sums) co_await worker.finished(std::move(sum));
    co_await worker.optimizer_step();  // 3.
    worker.mark("compute");
    worker.record("step", 1);
    worker.end_step();
  }
}

SubProgram run_pass(Worker& worker, const PassSegments& passes, const PassRun& run,
                    std::vector<Pending>& sums) {
  for (const OverlapSegment& step : passes.of(run.pass)) {
    const bool exchanges = step.call.collective >= 0;
    Pending exchange;
    LocalWork packing;  // real runs pack inside the exchange
    packing.name = "pack";
    packing.duration = step.call.packing;
    const bool packs = exchanges && packing.duration.value > 0;
    if (exchanges && run.exchange_overhead.value > 0) co_await worker.pause(run.exchange_overhead);
    if (packs) co_await worker.local(packing);
    if (exchanges) exchange = worker.start_collective(step.call.collective);
    if (!step.beside.empty()) co_await worker.finished(worker.start_compute(run.pass, step.beside));
    worker.mark("compute");
    if (exchanges) co_await worker.finished(std::move(exchange));
    if (exchanges) worker.mark(step.call.what);
    if (packs) co_await worker.local(packing);
    if (!step.then.empty()) co_await worker.finished(worker.start_compute(run.pass, step.then));
    for (std::size_t i = 0; run.sums && i < step.sums.size(); ++i)
      sums.push_back(worker.start_collective(step.sums[i]));
  }
}

}  // namespace stepcast
