#include <algorithm>
#include <functional>

#include "kernels/network/device_memory.hpp"
#include "kernels/timing/step_timer.hpp"
#include "report/statistics/statistics.hpp"
#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/transport/progress_thread.hpp"
#include "strategies/collectives/schedule.hpp"
#include "validate/measure/link_benchmark.hpp"

namespace stepcast {
namespace {

using What = LinkMeasurement::What;

constexpr double kMaxSlowdown = 100;  // limit of the key `strategy.compute_slowdown`
constexpr std::size_t kStream = 16'000'000;

/// A program's computation, and work for a progress thread meanwhile.
struct BackgroundThread {
  std::function<void()> compute;
  std::function<void(const std::function<void()>&)> submit;
  std::function<void()> wait;  ///< waits for the submitted work
};

LinkMeasurements measure_memory(Transport& transport, double budget) {
  const auto a = allocate_floats(kStream), b = allocate_floats(kStream), c = allocate_floats(kStream);
  const auto stream = [&] {
    for (std::size_t i = 0; i < kStream; ++i) c.get()[i] = a.get()[i] + b.get()[i];
  };
  LinkMeasurements rows;
  const Repeats alone = time_repeated(transport, budget, [&] {
    if (transport.is_rank_0()) stream();
  });
  const Repeats together = time_repeated(transport, budget, stream);
  if (!transport.is_rank_0()) return {};
  rows.push_back(link_measurement(What::memory_alone, "", 12.0 * kStream, alone));
  rows.push_back(link_measurement(What::memory_together, "", 12.0 * kStream, together));
  return rows;
}

/// Elements of an all-reduce that takes about `seconds`.
std::int64_t elements_for(Transport& transport, double seconds) {
  std::int64_t elements = 4096;
  std::vector<float> buffer;
  while (elements < 64'000'000) {
    buffer.assign(elements, 0);
    const auto rounds = rounds_of(ring_all_reduce({transport.ranks(), 1}), transport.rank().value, elements);
    const Repeats repeats =
        time_repeated(transport, 0, [&] { execute_rounds(transport, rounds, buffer.data()); });
    const double took =
        broadcast_from_rank_0(transport, transport.is_rank_0() ? median_of(undisturbed_seconds(repeats)) : 0);
    if (took > seconds / 2) break;
    elements *= 2;
  }
  return elements;
}

/// CPU time that pipeline messages cost a busy core. All ranks send one message and receive one while they
/// compute a step, with the copies from a tensor to a message buffer and back. The cost is the time beyond
/// the longer of the step alone and the messages alone, whichever thread needs it.
LinkMeasurements measure_message_host(Transport& transport, Backend& backend,
                                      const BackgroundThread& background, double budget) {
  constexpr std::int64_t kFewest = 1 << 14, kMost = 1 << 20;  // floats
  const RankId next = transport.rank_after(1);
  const RankId before = transport.rank_after(-1);
  const auto memory = allocate_floats(kStream);
  LinkMeasurements rows;
  for (std::int64_t size = kFewest; size <= kMost; size *= 4) {
    std::int64_t place = 0;
    const Round round{
        {.way = Transfer::Way::send, .peer = next.value, .slice = {size, 2 * size}, .after = {}},
        {.way = Transfer::Way::receive,
         .peer = before.value,
         .slice = {2 * size, 3 * size},
         .on_receive = OnReceive::copy,
         .after = {}}};
    const auto tensor = backend.make_activations({1, 64, size / 64, 1});
    const auto with_message = [&] {
      if ((place += 4 * size) + 4 * size > static_cast<std::int64_t>(kStream))
        place = 0;  // other memory than the caches hold
      float* region = memory.get() + place;
      tensor->copy_to(region);
      std::copy_n(region, size, region + size);
      background.submit([&] { execute_rounds(transport, {round}, region); });
      background.compute();
      background.wait();
      std::copy_n(region + 2 * size, size, region + 3 * size);
      tensor->copy_from(region + 3 * size);
    };
    const auto message_alone = [&] {
      background.submit([&] { execute_rounds(transport, {round}, memory.get() + place); });
      background.wait();
    };
    std::vector<Repeats> repeats_of =
        time_interleaved(transport, budget, {background.compute, message_alone, with_message});
    if (!transport.is_rank_0()) continue;
    for (std::size_t i = 0; i < repeats_of[2].seconds.size(); ++i)
      repeats_of[2].seconds[i] -= std::max(repeats_of[0].seconds[i], repeats_of[1].seconds[i]);
    LinkMeasurement row = link_measurement(What::message_host, "", 4.0 * size, repeats_of[2]);
    row.seconds = std::max(0.0, row.seconds);
    rows.push_back(row);
  }
  return rows;
}

}  // namespace

double compute_slowdown(double compute, double collective, double together) {
  const double lost = std::max(0.0, together - std::max(compute, collective));
  if (lost >= collective * (1 - 1 / kMaxSlowdown)) return kMaxSlowdown;
  return collective / (collective - lost);
}

double message_slowdown(double compute_slowdown) {
  constexpr double kCopiesShare = 3.0 / 4;
  return 1 / (1 - kCopiesShare * (1 - 1 / compute_slowdown));
}

LinkMeasurements measure_contention(Transport& transport, PollingPolicy& polling, Network& network,
                                    double budget) {
  LinkMeasurements rows = measure_memory(transport, budget);
  const auto compute = [&] {
    const ComputeScope computing(&polling);
    network.step();
  };
  const Repeats steps = time_repeated(transport, budget / 4, compute);
  const double step =
      broadcast_from_rank_0(transport, transport.is_rank_0() ? median_of(undisturbed_seconds(steps)) : 0);
  const std::int64_t elements = elements_for(transport, step / 2);
  std::vector<float> buffer(elements, 0);
  const auto rounds = rounds_of(ring_all_reduce({transport.ranks(), 1}), transport.rank().value, elements);
  const auto sum = [&] { execute_rounds(transport, rounds, buffer.data()); };
  CompletionQueue completions(&polling, [&] { transport.wake_to_poll(); });
  ProgressThread thread(nullptr, &polling);  // declared last: it uses `completions`
  const BackgroundThread background{compute,
                                    [&](const std::function<void()>& work) {
                                      thread.submit([&completions, work] {
                                        work();
                                        completions.post(std::make_shared<Operation>());
                                      });
                                    },
                                    [&completions] { completions.await_next(); }};
  const auto both = [&] {
    background.submit(sum);
    compute();
    background.wait();
  };
  std::vector<Repeats> repeats_of = time_interleaved(transport, 4 * budget, {compute, sum, both});
  const Repeats handed = time_repeated(transport, budget, [&] {
    background.submit([] {});
    background.wait();
  });
  const LinkMeasurements messages = measure_message_host(transport, network.backend(), background, budget);
  if (!transport.is_rank_0()) return {};
  rows.insert(rows.end(), messages.begin(), messages.end());
  const double bytes = 4.0 * elements;
  rows.push_back(link_measurement(What::compute_alone, "", 0, repeats_of[0]));
  rows.push_back(link_measurement(What::all_reduce_alone, "ring", bytes, repeats_of[1]));
  rows.push_back(link_measurement(What::compute_beside, "ring", bytes, repeats_of[2]));
  const double alone = median_of(undisturbed_seconds(repeats_of[0]));
  rows.back().seconds = alone + median_difference(repeats_of[2], repeats_of[0]);
  rows.push_back(link_measurement(What::hand_over, "", 0, handed));
  return rows;
}

}  // namespace stepcast
