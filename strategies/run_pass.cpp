#include "strategies/run_pass.hpp"

namespace stepcast {

Part run_pass(Worker& worker, const Passes& passes, const PassRun& run, std::vector<Pending>& sums) {
  for (const Stretch& stretch : passes.of(run.pass)) {
    const bool exchanges = stretch.call.collective >= 0;
    Pending exchange;
    LocalWork packing;  // a world with kernels packs within the exchange
    packing.name = "pack";
    packing.duration = stretch.call.packing;
    const bool packs = exchanges && packing.duration.value > 0;
    if (exchanges && run.exchange_overhead.value > 0) co_await worker.pause(run.exchange_overhead);
    if (packs) co_await worker.local(packing);
    if (exchanges) exchange = worker.start_collective(stretch.call.collective);
    if (!stretch.beside.empty()) co_await worker.finished(worker.start_compute(run.pass, stretch.beside));
    worker.mark("compute");
    if (exchanges) co_await worker.finished(std::move(exchange));
    if (exchanges) worker.mark(stretch.call.what);
    if (packs) co_await worker.local(packing);
    if (!stretch.then.empty()) co_await worker.finished(worker.start_compute(run.pass, stretch.then));
    for (std::size_t i = 0; run.sums && i < stretch.sums.size(); ++i)
      sums.push_back(worker.start_collective(stretch.sums[i]));
  }
}

}  // namespace stepcast
