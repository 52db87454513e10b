#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "report/results.hpp"
#include "validate/transport.hpp"

namespace stepcast {

/// How long sums take inside training steps, where one rank has slept until the other came, and caches hold
/// what a pass has left: not what the same sum takes among many in a row.
class SumTimes {
 public:
  /// Sums these over all ranks, and keeps how long that took.
  void sum(Transport& transport, std::span<float> summed);

  /// Whether what was summed since the last call counts.
  void keep(bool counts);

  /// One row of measured links for each number of bytes, on rank 0; all ranks call it. A sum lasts from when
  /// the last rank has come to it: as long as for that rank.
  std::vector<Row> rows(Transport& transport) const;

 private:
  std::map<std::int64_t, std::vector<double>> seconds_;  ///< by elements
  std::vector<std::pair<std::int64_t, double>> fresh_;   ///< elements and seconds: not yet known to count
};

/// The mean, without those that were interrupted: three times as long as the median.
double uninterrupted_mean(const std::vector<double>& seconds);

}  // namespace stepcast
