#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "report/plot_scaling.hpp"

namespace stepcast {

/// The series that hold something to draw: points by workers, each with its efficiency.
std::vector<ScalingSeries> drawable(const std::vector<ScalingSeries>& series);

inline bool has_interval(const PlottedValue& x) {
  return x.low && x.high;
}

/// Least and most of what was added.
struct ScalingExtent {
  double least = HUGE_VAL;
  double most = -HUGE_VAL;

  void add(double x) {
    least = std::min(least, x);
    most = std::max(most, x);
  }
  void add(const PlottedValue& x) {
    add(x.value);
    add(x.low.value_or(x.value));
    add(x.high.value_or(x.value));
  }
};

/// What the axes must show; intervals and published figures included. Efficiency is a fraction.
struct ScalingExtents {
  ScalingExtent workers, throughput, efficiency;
};

ScalingExtents extents_of(const std::vector<ScalingSeries>& all);

/// Data blocks of each series N: `$lN` (line), `$bN` (throughput band), `$eN` (efficiency band), `$pN`
/// (published) and
/// `$qN` (its efficiency); efficiencies in per cent.
std::string scaling_data(const std::vector<ScalingSeries>& all);

}  // namespace stepcast
