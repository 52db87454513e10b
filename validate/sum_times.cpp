#include "validate/sum_times.hpp"

#include <algorithm>

#include "kernels/stopwatch.hpp"
#include "report/statistics.hpp"
#include "strategies/collectives/algorithms.hpp"
#include "validate/gather.hpp"
#include "validate/play.hpp"

namespace stepcast {

double uninterrupted_mean(const std::vector<double>& seconds) {
  const double limit = 3 * median_of(seconds);
  std::vector<double> kept;
  std::ranges::copy_if(seconds, std::back_inserter(kept), [limit](double one) { return one <= limit; });
  return mean(kept);
}

void SumTimes::sum(Transport& transport, std::span<float> summed) {
  const auto elements = static_cast<std::int64_t>(summed.size());
  const auto rounds = rounds_of(ring_all_reduce({transport.ranks(), 1}), transport.rank(), elements);
  const Instant begin = now();
  play(transport, rounds, summed.data());
  fresh_.emplace_back(elements, now().wall - begin.wall);
}

void SumTimes::keep(bool counts) {
  for (const auto& [elements, seconds] : fresh_) {
    if (counts) seconds_[elements].push_back(seconds);
  }
  fresh_.clear();
}

std::vector<Row> SumTimes::rows(Transport& transport) const {
  std::vector<Row> rows;
  for (const auto& [elements, own] : seconds_) {
    const auto ranks = gathered(transport, own);
    if (ranks.empty()) continue;
    std::vector<double> seconds = ranks.front();
    for (const std::vector<double>& rank : ranks) {
      for (std::size_t i = 0; i < std::min(seconds.size(), rank.size()); ++i)
        seconds[i] = std::min(seconds[i], rank[i]);
    }
    Row row;
    row.set("what", std::string("all_reduce"));
    row.set("algorithm", std::string("ring"));
    row.set("bytes", 4.0 * static_cast<double>(elements));
    row.set("seconds", uninterrupted_mean(seconds));
    row.set("low", quantile(seconds, 0.25));
    row.set("high", quantile(seconds, 0.75));
    row.set("repeats", static_cast<std::int64_t>(seconds.size()));
    rows.push_back(row);
  }
  return rows;
}

}  // namespace stepcast
