#include "report/plot_scaling_data.hpp"

#include <fmt/format.h>

#include "report/results.hpp"

namespace stepcast {
namespace {

/// Points that can be drawn, by workers, each with its efficiency.
ScalingSeries cleaned(ScalingSeries series) {
  auto& points = series.points;
  std::erase_if(points, [](const auto& p) { return !(p.workers > 0 && p.throughput.value > 0); });
  std::erase_if(series.published, [](const auto& p) { return !(p.workers > 0 && p.throughput > 0); });
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& a, const auto& b) { return a.workers < b.workers; });
  if (points.empty()) return series;
  if (points.size() == 1 && points.front().workers > 1) return series;  // nothing to scale from
  const double base = points.front().throughput.value / points.front().workers;
  for (ScalingPoint& point : points) {
    if (point.efficiency) continue;
    const auto share = [&](std::optional<double> x) {
      return x ? std::optional(*x / point.workers / base) : x;
    };
    const PlottedValue& rate = point.throughput;
    point.efficiency = PlottedValue{rate.value / point.workers / base, share(rate.low), share(rate.high)};
  }
  return series;
}

std::string interval_row(double workers, const PlottedValue& x, double scale) {
  return fmt::format("{} {} {} {}\n", shortest(workers), shortest(scale * *x.low), shortest(scale * *x.high),
                     shortest(scale * x.value));
}

}  // namespace

std::vector<ScalingSeries> drawable(const std::vector<ScalingSeries>& series) {
  std::vector<ScalingSeries> all;
  for (const auto& one : series) {
    all.push_back(cleaned(one));
    if (all.back().points.empty() && all.back().published.empty()) all.pop_back();
  }
  return all;
}

ScalingExtents extents_of(const std::vector<ScalingSeries>& all) {
  ScalingExtents extents;
  for (const auto& series : all) {
    for (const auto& point : series.points) {
      extents.workers.add(point.workers);
      extents.throughput.add(point.throughput);
      if (point.efficiency) extents.efficiency.add(*point.efficiency);
    }
    for (const auto& point : series.published) {
      extents.workers.add(point.workers);
      extents.throughput.add(point.throughput);
      if (point.efficiency) extents.efficiency.add(*point.efficiency);
    }
  }
  return extents;
}

std::string scaling_data(const std::vector<ScalingSeries>& all) {
  std::string out;
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::string line, band, efficiency, published, share;
    for (const auto& p : all[i].points) {
      line += fmt::format("{} {} {}\n", shortest(p.workers), shortest(p.throughput.value),
                          p.efficiency ? shortest(100 * p.efficiency->value) : "NaN");
      if (has_interval(p.throughput)) {
        band += interval_row(p.workers, p.throughput, 1);
      }
      if (p.efficiency && has_interval(*p.efficiency)) {
        efficiency += interval_row(p.workers, *p.efficiency, 100);
      }
    }
    for (const auto& p : all[i].published) {
      published += fmt::format("{} {}\n", shortest(p.workers), shortest(p.throughput));
      if (p.efficiency) share += fmt::format("{} {}\n", shortest(p.workers), shortest(100 * *p.efficiency));
    }
    for (const auto& [letter, rows] : {std::pair('l', line), std::pair('b', band), std::pair('e', efficiency),
                                       std::pair('p', published), std::pair('q', share)}) {
      out += fmt::format("${}{} << EOD\n{}EOD\n", letter, i, rows);
    }
  }
  return out;
}

}  // namespace stepcast
