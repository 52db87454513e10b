#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "models/pytorch_profile/operators.hpp"

namespace stepcast {

std::vector<StepRange> step_ranges(const Profile& profile) {
  std::vector<StepRange> ranges, updates;
  for (const ProfileOperator& one : profile.operators) {
    const std::string& name = profile.name(one);
    if (name.starts_with("ProfilerStep#")) ranges.push_back({one.start, one.end, one.name});
    if (one.annotation && name.starts_with("Optimizer.step"))
      updates.push_back({one.start, one.end, one.name});
  }
  const auto by_start = [](const StepRange& a, const StepRange& b) { return a.start < b.start; };
  std::sort(ranges.begin(), ranges.end(), by_start);
  if (!ranges.empty()) return ranges;
  std::sort(updates.begin(), updates.end(), by_start);
  double start = 0;
  for (const StepRange& update : updates) {
    if (update.start < start) continue;  // an optimizer inside another one
    ranges.push_back({start, update.end, update.name});
    start = update.end;
  }
  return ranges;
}

int step_at(const std::vector<StepRange>& steps, double time) {
  const auto after = std::upper_bound(steps.begin(), steps.end(), time,
                                      [](double value, const StepRange& step) { return value < step.start; });
  if (after == steps.begin() || time >= std::prev(after)->end) return -1;
  return (after - steps.begin()) - 1;
}

}  // namespace stepcast
