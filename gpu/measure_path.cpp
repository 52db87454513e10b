#include "gpu/measure_path.hpp"

#include <map>

#include "report/statistics.hpp"
#include "strategies/collectives/algorithms.hpp"
#include "validate/play.hpp"
#include "validate/repeats.hpp"

namespace stepcast {

std::vector<MessageTime> message_times_of(Transport& transport, std::int64_t most_elements,
                                          const std::function<void(std::int64_t elements)>& sum) {
  constexpr double kBudget = 0.1;  // seconds a size, about
  const int ranks = transport.ranks();
  std::vector<MessageTime> times;
  for (std::int64_t elements = 256; elements <= most_elements; elements *= 4) {
    const Repeats repeats = repeated(transport, kBudget, [&] { sum(elements); });
    if (transport.rank() != 0) continue;
    times.push_back({{4.0 * static_cast<double>(elements) / ranks},
                     {median_of(undisturbed(repeats)) / (2 * (ranks - 1))}});
  }
  return times;
}

std::vector<MessageTime> ring_times(Transport& transport, float* here, std::int64_t most_elements,
                                    const AroundSum& around) {
  const Schedule ring = ring_all_reduce({transport.ranks(), 1});
  std::map<std::int64_t, std::vector<Round>> known;
  return message_times_of(transport, most_elements, [&](std::int64_t elements) {
    auto& rounds = known[elements];
    if (rounds.empty()) rounds = rounds_of(ring, transport.rank(), elements);
    around(static_cast<std::size_t>(elements), [&] { play(transport, rounds, here); });
  });
}

}  // namespace stepcast
