#include "validate/link_table.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>

namespace stepcast {
namespace {

constexpr double kLeastFactor = 1e-5;  // platform files go down to 1e-6

/// Sorted, one a size (the median of what there is), never falling.
std::vector<MessageTime> cleaned(std::vector<MessageTime> times) {
  std::stable_sort(times.begin(), times.end(), [](const MessageTime& a, const MessageTime& b) {
    return a.size != b.size ? a.size < b.size : a.time < b.time;
  });
  std::vector<MessageTime> clean;
  for (std::size_t i = 0; i < times.size();) {
    std::size_t end = i;
    while (end < times.size() && times[end].size == times[i].size) ++end;
    MessageTime middle = times[i + (end - i - 1) / 2];
    if (!(middle.time.value > 0)) throw std::invalid_argument("a message takes more than no time");
    if (!clean.empty()) middle.time = std::max(middle.time, clean.back().time);
    clean.push_back(middle);
    i = end;
  }
  if (clean.size() < 2) throw std::invalid_argument("a table of links needs times of two sizes at least");
  return clean;
}

/// Of the line between two sizes, or from the latency to the upper one where that line would begin lower.
double slope_between(const MessageTime& lower, const MessageTime& upper, double latency) {
  const double slope = (upper.time - lower.time).value / (upper.size - lower.size).value;
  const bool begins_lower = upper.time.value - slope * upper.size.value < latency;
  return begins_lower ? (upper.time.value - latency) / upper.size.value : slope;
}

/// Least seconds a byte that any size reaches beyond the latency; of sizes that are mostly latency nothing
/// can be seen.
double least_slope(const std::vector<MessageTime>& times, double latency) {
  double least = times.back().time.value / times.back().size.value;
  for (const MessageTime& one : times) {
    const double beyond = one.time.value - latency;
    if (beyond >= latency) least = std::min(least, beyond / one.size.value);
  }
  return least;
}

}  // namespace

LinkTable fitted_link_table(std::vector<MessageTime> times) {
  const std::vector<MessageTime> clean = cleaned(std::move(times));
  const double latency = clean.front().time.value;
  const double least = least_slope(clean, latency);
  LinkTable table{{latency}, {1 / least}, {}};
  for (std::size_t i = 1; i < clean.size(); ++i) {
    const double slope =
        std::clamp(slope_between(clean[i - 1], clean[i], latency), least, least / kLeastFactor);
    const double overhead = clean[i].time.value - latency - slope * clean[i].size.value;
    table.costs.push_back({clean[i].size, {std::max(0.0, overhead)}, least / slope});
  }
  // Beyond the largest size in proportion: the slope of the last piece alone would carry its noise on.
  const double slope = (clean.back().time.value - latency) / clean.back().size.value;
  table.costs.push_back(
      {{std::numeric_limits<double>::infinity()}, {0}, std::clamp(least / slope, kLeastFactor, 1.0)});
  return table;
}

Seconds message_time(const LinkTable& table, Bytes size) {
  const MessageCost& cost = message_cost(table.costs, size);
  return table.latency + cost.overhead + size / (cost.bandwidth_factor * table.bandwidth);
}

}  // namespace stepcast
