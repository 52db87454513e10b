#include "gpu/measure_path.hpp"

#include "report/statistics.hpp"
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

}  // namespace stepcast
