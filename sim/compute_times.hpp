#pragma once

#include <vector>

#include "strategies/noise.hpp"
#include "strategies/workload.hpp"

namespace stepcast {

/// Seconds of a range of layers in any measured step, by prefix sums: one subtraction a look-up, unless every
/// layer has a jitter of its own.
class ComputeTimes {
 public:
  explicit ComputeTimes(const Workload& workload);

  MeasuredSteps samples() const { return {prefixes_.size() - 1, sample_ranks_}; }
  double seconds(Work pass, LayerRange layers, const Draw& draw) const;

 private:
  using Prefix = std::vector<LayerSeconds>;  ///< [i]: sums over layers 0 .. i-1

  std::vector<LayerSeconds> median_;
  std::vector<Prefix> prefixes_;  ///< medians, then each measured step
  int sample_ranks_;
};

}  // namespace stepcast
