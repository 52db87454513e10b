#include <map>

#include "gpu/ranks/gpu_rank.hpp"
#include "report/statistics/statistics.hpp"
#include "runtime/collectives/schedule_executor.hpp"
#include "runtime/host_noise/repeated_timing.hpp"
#include "strategies/collectives/schedule.hpp"

namespace stepcast {

std::vector<MessageTime> message_times_of(Transport& transport, std::int64_t max_elements,
                                          const std::function<void(std::int64_t elements)>& sum) {
  constexpr double kBudget = 0.1;  // approximate seconds per message size
  const int ranks = transport.ranks();
  std::vector<MessageTime> times;
  for (std::int64_t elements = 256; elements <= max_elements; elements *= 4) {
    const Repeats repeats = time_repeated(transport, kBudget, [&] { sum(elements); });
    if (!transport.is_rank_0()) continue;
    times.push_back(
        {{4.0 * elements / ranks}, {median_of(undisturbed_seconds(repeats)) / (2 * (ranks - 1))}});
  }
  return times;
}

std::vector<MessageTime> ring_times(Transport& transport, float* host_values, std::int64_t max_elements,
                                    const AroundSum& around) {
  const Schedule ring = ring_all_reduce({transport.ranks(), 1});
  std::map<std::int64_t, std::vector<Round>> known;
  return message_times_of(transport, max_elements, [&](std::int64_t elements) {
    auto& rounds = known[elements];
    if (rounds.empty()) rounds = rounds_of(ring, transport.rank().value, elements);
    around(elements, [&] { execute_rounds(transport, rounds, host_values); });
  });
}

}  // namespace stepcast
